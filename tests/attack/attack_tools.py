"""What attacks have in common: users, the service and what it holds, and the figures that are measured on it."""

import array
import collections
import json
import os
import re
import resource
import select
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time

import isolation  # first: it says where the product lies
import config_pb2
import control_pb2
from profile_run import HEAP_PROFILE, program
from service_run import Place, wait_for

MALLORY, ALICE, ROOT = 61001, 61002, 0
PRELOAD = f"{isolation.PRODUCT}/src/client/libheapprofd_preload.so"
HOSTILE_CLIENT = program("hostile_client")

# Limits. Delays are those of a machine that others use, too: the goals are 0.5 s and 0.1 s.
EXEC_LIMIT_S = 0.75
HELLO_LIMIT_S = 0.3
GUARD_S = 10  # nothing holds up the machine's execs longer

HANDSHAKE_MAGIC, WIRE_VERSION = 0x3130646670616568, 3  # src/wire/handshake.h
ORIGIN_DORMANT = 2
CONTROL_MAGIC, CONTROL_START = 0x3130746370616568, 2  # src/wire/control.h
CONTROL_STARTED, CONTROL_NOTE, CONTROL_DONE = 18, 20, 16
MAX_CONTROL_PAYLOAD = 1 << 20

ATTACKS = {}
Attack = collections.namedtuple("Attack", "name finding run deadline_s")


class Impossible(Exception):
    """This machine does not allow the attack; says why."""


class Figure:
    """What an attack has shown. Without a limit it is only told."""

    def __init__(self, what, value, unit, limit=None):
        self.what, self.value, self.unit, self.limit = what, round(value, 3), unit, limit

    def as_dict(self):
        return {"what": self.what, "value": self.value, "unit": self.unit, "limit": self.limit,
                "held": self.limit is None or self.value <= self.limit}


def attack(name, finding, deadline_s=60):
    """Registers a function from is_quick to figures."""
    def register(run):
        ATTACKS[name] = Attack(name, finding, run, deadline_s)
        return run
    return register


def least(measure, limit, rounds=3):
    """The least of some rounds; what others do on this machine is not in all of them. One that keeps the limit will do."""
    best = float("inf")
    for _ in range(rounds):
        best = min(best, measure())
        if best <= limit:
            break
    return best


# Users.


def become(uid):
    """This process becomes an ordinary user's, as if he had logged in."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    isolation.prctl(isolation.PR_SET_DUMPABLE, 1)


def start_as(uid, command, **options):
    return subprocess.Popen(command, user=uid, group=uid, extra_groups=[], **options)


def folder_of(uid):
    path = tempfile.mkdtemp(prefix=f"of_{uid}_")
    os.chown(path, uid, uid)
    return path


class Child:
    """A forked process of a user that runs a function, which may tell(value) any number of times."""

    def __init__(self, uid, function):
        self._answers, tell_fd = os.pipe()
        self._buffer = b""
        self.pid = os.fork()
        if self.pid == 0:
            try:
                become(uid)
                function(lambda value: os.write(tell_fd, json.dumps(value).encode() + b"\n"))
            except OSError as error:
                os.write(tell_fd, json.dumps({"error": str(error)}).encode() + b"\n")
            finally:
                os._exit(0)
        os.close(tell_fd)

    def next(self, timeout_s):
        """What it has told; None: nothing in this time, or no more."""
        end = time.monotonic() + timeout_s
        while b"\n" not in self._buffer:
            if not select.select([self._answers], [], [], max(0, end - time.monotonic()))[0]:
                return None
            part = os.read(self._answers, 65536)
            if not part:
                return None
            self._buffer += part
        line, self._buffer = self._buffer.split(b"\n", 1)
        return json.loads(line)

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


# The service.


class Service(Place):
    """A heapprofd of root that runs; with its recordings it ends with the block."""

    def __init__(self, **environment):
        super().__init__()
        self.env.update(environment)
        self.socket = os.path.join(self.directory, "socket")
        self.start()
        # Nobody reads what it says, and it must not wait for that.
        threading.Thread(target=lambda stream: collections.deque(stream, maxlen=0), args=(self.service.stderr,),
                         daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for pid in processes_of_product():
            kill_if_there(pid, signal.SIGKILL)
        wait_for(lambda: not processes_of_product(), "the product's processes end")
        self.service.wait()

    def is_alive(self):
        return self.service.poll() is None


class Recorder:
    """A user's heap_profile that asks the service and has begun."""

    def __init__(self, place, uid, *options, must_begin=True):
        self.folder = folder_of(uid)
        self.output = os.path.join(self.folder, "out")
        self._log = os.path.join(self.folder, "log")
        environment = {"PATH": os.environ["PATH"], "HEAPPROFD_DIRECTORY": place.directory}
        with open(self._log, "wb") as log:
            self.process = start_as(uid, [HEAP_PROFILE, "--no-start", "-o", self.output, *options], env=environment,
                                    stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        if must_begin:
            wait_for(lambda: self.has_begun() or self.has_ended(), "a recording begins")
            assert self.has_begun(), self.text()

    def text(self):
        with open(self._log, errors="replace") as log:
            return log.read()

    def has_begun(self):
        return "Profiling active" in self.text()

    def has_ended(self):
        return self.process.poll() is not None


def kill_if_there(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def all_pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _running(*names):
    """Processes whose program's file name begins with one of these."""
    pids = []
    for pid in all_pids():
        try:
            if os.path.basename(os.readlink(f"/proc/{pid}/exe")).startswith(names):
                pids.append(pid)
        except OSError:
            pass  # it has just ended
    return pids


def processes_of_product():
    """Services, whatever they have started, and clients: nobody else's are in this namespace."""
    return _running("heapprofd", "heap_profile")


def service_processes():
    """The service's tree, however its processes are related: front desk, engines, gate, finishers."""
    return _running("heapprofd")


def _status(pid, field):
    with open(f"/proc/{pid}/status") as status:
        for line in status:
            if line.startswith(field + ":"):
                return line.split()[1:]
    raise KeyError(field)


def effective_uid(pid):
    return int(_status(pid, "Uid")[1])


def _pss_kib(pid):
    with open(f"/proc/{pid}/smaps_rollup") as rollup:
        return next(int(line.split()[1]) for line in rollup if line.startswith("Pss:"))


def _sum_over(pids, measure):
    total = 0
    for pid in pids:
        try:
            total += measure(pid)
        except (OSError, KeyError, StopIteration):
            pass  # it has just ended
    return total


def service_memory_mib():
    return _sum_over(service_processes(), _pss_kib) / 1024


def service_descriptors():
    return _sum_over(service_processes(), lambda pid: len(os.listdir(f"/proc/{pid}/fd")))


class Guard:
    """Kills the service when execs could have been held up for too long. It needs no exec for that, and runs before."""

    def __init__(self, seconds=GUARD_S):
        self._pid = os.fork()
        if self._pid == 0:
            time.sleep(seconds)
            for pid in service_processes():
                kill_if_there(pid, signal.SIGKILL)
            os._exit(0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)


# Delays.


def exec_delay(limit_s):
    """Seconds that root's /bin/true takes; the limit when it takes longer."""
    begin = time.monotonic()
    pid = os.fork()
    if pid == 0:
        os.execv("/bin/true", ["/bin/true"])
    pidfd = os.pidfd_open(pid)
    select.select([pidfd], [], [], limit_s)
    delay = time.monotonic() - begin
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(pidfd)
    return min(delay, limit_s)


def connect(path):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    return connection


def hello_bytes():
    return struct.pack("<QIIQ", HANDSHAKE_MAGIC, WIRE_VERSION, ORIGIN_DORMANT, 0)


def receive_welcome(connection):
    """Descriptors that came with it; none: declined."""
    data, ancillary, _, _ = connection.recvmsg(64, 1024)
    fds = array.array("i")
    for level, kind, content in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(content[:len(content) // 4 * 4])
    return list(fds) if data else []


class Hellos:
    """Alice's programs report all the while, one after the other; how long did the slowest wait for its answer? She has
    a recording, so that an answer is work."""

    def __init__(self, place):
        self._recorder = Recorder(place, ALICE, "-n", "python3", "--no-startup")
        self._stop, stop_fd = os.pipe()
        self._child = Child(ALICE, lambda tell: self._say(place.socket, self._stop, tell))
        self._stop_fd = stop_fd

    @staticmethod
    def _say(path, stop, tell):
        worst = count = wanted = 0
        while not select.select([stop], [], [], 0.02)[0]:
            begin = time.monotonic()
            with connect(path) as connection:
                connection.send(hello_bytes())
                select.select([connection, stop], [], [])
                worst = max(worst, time.monotonic() - begin)
                count += 1
                if select.select([connection], [], [], 0)[0]:
                    fds = receive_welcome(connection)
                    wanted += 1 if fds else 0
                    for fd in fds:
                        os.close(fd)
        tell({"worst": worst, "count": count, "wanted": wanted})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._child.kill()

    def worst(self):
        """Ends them and their recording; seconds. An answer that has not come counts as long as it was waited for."""
        os.write(self._stop_fd, b"x")
        answer = self._child.next(10)
        self._recorder.process.send_signal(signal.SIGINT)
        assert answer and "worst" in answer, f"alice cannot ask: {answer}"
        return answer["worst"]


def programs_not_recorded(summary):
    """Of heap_profile's own count."""
    return sum(int(count) for count in re.findall(r"(\d+) programs? (?:was|were) not recorded", summary))


def raise_descriptor_limit():
    """As far as this process may."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


# Requests as somebody writes them who does not use heap_profile.


def start_request(names, **fields):
    """A StartRequest for programs of these names."""
    config = config_pb2.TraceConfig()
    source = config.data_sources.add().config
    source.name = "android.heapprofd"
    source.heapprofd_config.sampling_interval_bytes = 4096
    source.heapprofd_config.process_cmdline.extend(names)
    return control_pb2.StartRequest(trace_config=config.SerializeToString(), **fields).SerializeToString()


def control_message(kind, payload):
    return struct.pack("<QII", CONTROL_MAGIC, kind, len(payload)) + payload


def send_start(connection, payload, fds):
    socket.send_fds(connection, [control_message(CONTROL_START, payload)], fds)


def receive_answer(connection, timeout_s=10):
    """(kind, payload) of the first answer that is no note; None: there is none."""
    connection.settimeout(timeout_s)
    try:
        while True:
            header = connection.recv(16, socket.MSG_WAITALL)
            if len(header) < 16:
                return None
            _, kind, size = struct.unpack("<QII", header)
            payload = connection.recv(size, socket.MSG_WAITALL) if size else b""
            if kind != CONTROL_NOTE:
                return kind, payload
    except OSError:
        return None


def full_pipe():
    """The ends of a pipe into which nothing fits; writing waits."""
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    try:
        while True:
            os.write(write_end, b"x" * 4096)
    except BlockingIOError:
        pass
    os.set_blocking(write_end, True)
    return read_end, write_end
