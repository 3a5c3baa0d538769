"""A heapprofd of the test's own, programs that have preloaded the library, and recordings."""

import glob
import os
import shutil
import signal
import subprocess
import tempfile
import time

import trace_pb2
from profile_run import HEAP_PROFILE, Pprof, program

COMPAT = os.environ["COMPAT"]
HEAPPROFD = os.path.join(COMPAT, "heapprofd")
PRELOAD = os.path.join(COMPAT, "libheapprofd_glibc_preload.so")
DEADLINE_S = 60


def wait_for(condition, what):
    """Until the condition holds; gives its value."""
    end = time.monotonic() + DEADLINE_S
    while not (value := condition()):
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.005)
    return value


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


class Patient:
    """tests/programs/patient under the library, or another program that talks in lines."""

    def __init__(self, place, command=None, env=None, **who):
        self.process = subprocess.Popen(
            command or [program("patient")], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, **place.env, "LD_PRELOAD": PRELOAD, **(env or {})}, **who)
        self.pid = self.process.pid

    def wait_ready(self):
        assert self.process.stdout.readline() == "ready\n"
        return self

    def tell(self, letter):
        """Sends a letter and waits for the answer."""
        self.process.stdin.write(letter)
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def end(self):
        self.process.communicate(timeout=DEADLINE_S)
        return self.process.returncode

    def kill(self):
        self.process.kill()
        self.process.communicate()


class Recording:
    """A heap_profile that asks the service."""

    def __init__(self, place, options, command=None, user=None, **who):
        self.parent = tempfile.mkdtemp(prefix="heap_profile_test_")
        if user is not None:
            os.chown(self.parent, user, user)
        self.directory = os.path.join(self.parent, "out")
        self.process = subprocess.Popen(command or [HEAP_PROFILE, "-o", self.directory, *options], text=True,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env={**os.environ, **place.env}, user=user, **who)
        self.stderr = ""

    def wait_active(self):
        line = self.process.stderr.readline()
        while line and "Profiling active" not in line:
            self.stderr += line
            line = self.process.stderr.readline()
        assert line, self.stderr
        return self

    def finish(self, stop=signal.SIGINT):
        """Ends it; afterwards exit_code, stderr, dumps and pprofs are there."""
        if stop is not None:
            self.process.send_signal(stop)
        _, rest = self.process.communicate(timeout=DEADLINE_S)
        self.stderr += rest
        self.exit_code = self.process.returncode
        self.trace = trace_pb2.Trace()
        path = os.path.join(self.directory, "raw-trace")
        if os.path.exists(path):
            with open(path, "rb") as file:
                self.trace.ParseFromString(file.read())
        self.files = {name: os.stat(os.path.join(self.directory, name)).st_mode & 0o777
                      for name in (os.listdir(self.directory) if os.path.isdir(self.directory) else [])}
        self.pprofs = sorted((Pprof(p) for p in glob.glob(os.path.join(self.directory, "heap_dump.*"))),
                             key=lambda p: int(p.number))
        shutil.rmtree(self.parent, ignore_errors=True)
        return self

    def dumps_of(self, pid):
        """All ProcessHeapSamples of a process, in order."""
        return [dump for packet in self.trace.packet for dump in packet.profile_packet.process_dumps
                if dump.pid == pid]


def live_bytes(dump):
    return sum(s.self_allocated - s.self_freed for s in dump.samples)


class Place:
    """A directory for a service; the service itself by start()."""

    def __init__(self):
        self.directory = tempfile.mkdtemp(prefix="hpd_")
        self.env = {"HEAPPROFD_DIRECTORY": self.directory}
        self.service = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def start(self, *options, user=None):
        """`user`: who runs the service, and has the place then."""
        if user is not None:
            os.chown(self.directory, user, user)
        self.service = subprocess.Popen([HEAPPROFD, *options], env={**os.environ, **self.env}, user=user, group=user,
                                        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        # Anybody who connects is served once the new service listens.
        wait_for(lambda: self.answers() or self.service.poll() is not None, "heapprofd does not listen")
        assert self.service.poll() is None, self.service.stderr.read()
        return self

    def answers(self):
        mark = subprocess.run([HEAP_PROFILE, "mark", "probe"], env={**os.environ, **self.env},
                              capture_output=True, text=True)
        # "nothing is being recorded" comes from a service as well as from none: look at the socket.
        return mark.returncode == 0 or self._accepts()

    def _accepts(self):
        import socket
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(os.path.join(self.directory, "socket"))
                return True
            except OSError:
                return False

    def parts(self):
        """The service's processes: itself, the exec gate, finishers."""
        with open(f"/proc/{self.service.pid}/task/{self.service.pid}/children") as children:
            return {self.service.pid, *(int(pid) for pid in children.read().split())}

    def kill(self):
        """Nothing of it can come to an orderly end, nor begin anew, when another part of it has gone first."""
        self.service.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.service.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        parts = self.parts()
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in parts:
                os.kill(pid, number)
        self.service.communicate()

    def close(self):
        if self.service is not None and self.service.poll() is None:
            self.service.terminate()
            self.service.communicate(timeout=DEADLINE_S)
        elif self.service is not None:
            self.service.stderr.close()
        shutil.rmtree(self.directory, ignore_errors=True)
