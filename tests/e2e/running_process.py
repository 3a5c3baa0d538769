"""A process to attach to, and looking at what attaching has left in it."""

import contextlib
import json
import os
import subprocess
import tempfile
import time

import trace_pb2
from google.protobuf.message import DecodeError

from profile_run import HEAP_PROFILE, program
from service_run import HEAPPROFD, Place

DEADLINE_S = 60
GATE = "heapprofd-gate"  # gives all programs permission to start
_DOCTOR = subprocess.run([HEAP_PROFILE, "doctor"], capture_output=True, text=True, check=False).stdout
# Root in a container may not be allowed to.
MAY_ATTACH = "ok    attach to processes of all users" in _DOCTOR
MAY_CATCH = "ok    catch new processes by name" in _DOCTOR


def live_thread(pid):
    """The process, or another thread of it when its first one has ended."""
    for tid in [pid, *os.listdir(f"/proc/{pid}/task")]:
        try:
            os.readlink(f"/proc/{tid}/exe")
            return tid
        except OSError:
            pass
    return pid


def changed_code_bytes(pid):
    """Number of bytes of code that are not as in their files."""
    changed = 0
    pid = live_thread(pid)
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            fields = line.split()
            if "x" not in fields[1] or fields[4] == "0":
                continue
            low, high = (int(part, 16) for part in fields[0].split("-"))
            try:
                with open(f"/proc/{pid}/map_files/{low:x}-{high:x}", "rb") as file:
                    file.seek(int(fields[2], 16))
                    wanted = file.read(high - low).ljust(high - low, b"\0")
                memory.seek(low)
                found = memory.read(high - low)
            except OSError:  # a library that was just unloaded
                continue
            changed += sum(a != b for a, b in zip(wanted, found)) if wanted != found else 0
    return changed


def state_of(pid):
    """One letter of /proc/PID/stat."""
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rsplit(")", 1)[1].split()[0]


def child_named(pid, name):
    """The child process with this name; None: there is none."""
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        for child in file.read().split():
            with contextlib.suppress(OSError), open(f"/proc/{child}/comm") as comm:
                if comm.read().strip() == name:
                    return int(child)
    return None


def dumped_now(engine, recording):
    """Ids of the processes that are recorded."""
    subprocess.run([HEAP_PROFILE, "mark", "now"], env={**os.environ, **engine.env}, check=True, capture_output=True)
    trace = trace_pb2.Trace()
    try:
        with open(os.path.join(recording.directory, "raw-trace"), "rb") as file:
            trace.ParseFromString(file.read())
    except DecodeError:
        return set()  # in the middle of a packet
    return {dump.pid for packet in trace.packet for dump in packet.profile_packet.process_dumps}


class Running:
    """A program of ours that has said that it is ready."""

    def __init__(self, command, **options):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)
        assert self.process.stdout.readline() == "ready\n"
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


class Engine(Place):
    """A heapprofd of the test's own; `wrapper` is a command that runs it."""

    def __init__(self, wrapper=()):
        super().__init__()
        self.ends_by_itself = bool(wrapper)  # wrappers like strace take no signal meanwhile
        if wrapper:
            self.service = subprocess.Popen([*wrapper, HEAPPROFD, "--exit-when-idle"], env={**os.environ, **self.env},
                                            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            wait_until(self._accepts)
        else:
            self.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.ends_by_itself:
            self.service.communicate(timeout=DEADLINE_S)
        self.close()

    def tool(self, *options, **popen):
        """A running heap_profile."""
        more = popen.pop("env_more", {})
        return subprocess.Popen([HEAP_PROFILE, *options], env={**os.environ, **self.env, **more}, **popen)

    def attach(self, pid, milliseconds, options=()):
        return Attached(pid, milliseconds, options, env=self.env)


class Attached:
    """One finished heap_profile -p. Without a place in `env` it brings its own engine."""

    def __init__(self, pid, milliseconds, options=(), env=None):
        with tempfile.TemporaryDirectory() as directory:
            stats = os.path.join(directory, "stats.json")
            self.out = os.path.join(directory, "out")
            self.result = subprocess.run(
                [HEAP_PROFILE, "-p", str(pid), "-d", str(milliseconds), "-o", self.out, *options], capture_output=True,
                text=True, timeout=DEADLINE_S,
                env={**os.environ, "HEAPPROFD_DIRECTORY": os.path.join(directory, "service"), **(env or {}),
                     "HEAPPROFD_STATS_JSON": stats})
            self.stats = None
            if os.path.exists(stats):
                with open(stats) as file:
                    self.stats = json.load(file)


def wait_until(condition):
    end = time.monotonic() + DEADLINE_S
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.01)


# Of a program that its test ends: longer than a test takes on the slowest machine, an emulated one.
LONG_S = 600


def storm(seconds):
    return Running([program("storm"), str(seconds)])
