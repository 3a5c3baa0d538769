"""A service of root and its recordings, and what they hold, however many processes they are."""

import collections
import os
import re
import signal
import subprocess
import threading
import time

import isolation  # first: it says where the product lies
from attack_tools import folder_of, kill_if_there, start_as
from profile_run import HEAP_PROFILE
from service_run import Place, wait_for

PRELOAD = f"{isolation.PRODUCT}/src/client/libheapprofd_preload.so"
GUARD_S = 10  # nothing holds up the machine's execs longer


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

    def __init__(self, place, uid, *options, must_begin=True, folder=None):
        self.folder = folder or folder_of(uid)
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


def programs_not_recorded(summary):
    """Of heap_profile's own count."""
    return sum(int(count) for count in re.findall(r"(\d+) programs? (?:was|were) not recorded", summary))


def all_pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _running(*names):
    """Processes whose names begin with one of these. Their files would have to be waited for: one may hang in an exec."""
    pids = []
    for pid in all_pids():
        try:
            if _status(pid, "Name")[0].startswith(names) and _status(pid, "State")[0] != "Z":
                pids.append(pid)
        except (OSError, KeyError):
            pass  # it has just ended
    return pids


def processes_of_product():
    """Services, whatever they have started, and clients: nobody else's are in this namespace."""
    return _running("heapprofd", "heap_profile")


def service_processes():
    """The service's tree, however its processes are related: service, gate, finishers."""
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
