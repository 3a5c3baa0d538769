"""What attacks have in common: figures and their limits, hostile and honest users, and the delay of an exec."""

import collections
import json
import os
import resource
import select
import signal
import subprocess
import tempfile
import time

import isolation  # first: it says where the product lies
from profile_run import program

MALLORY, ALICE, ROOT = 61001, 61002, 0
HOSTILE_CLIENT = program("hostile_client")

# On a machine that is busy with something else everything takes longer; attacks that succeed take much longer still.
SLACK = float(os.environ.get("ATTACK_SLACK", "1"))

# Limits. Of delays the goals; where others use the machine, too, what they can add to so short ones on top of the slack.
EXEC_LIMIT_S, HELLO_LIMIT_S = (0.5, 0.1) if SLACK == 1 else (0.75, 0.3)
MEMORY_LIMIT_MIB = 128  # more than before
DESCRIPTOR_LIMIT = 100  # more than before

ATTACKS = {}
Attack = collections.namedtuple("Attack", "name finding run deadline_s")


class Impossible(Exception):
    """This machine does not allow the attack; says why."""


UNTIL_THE_END = float("inf")  # an attack that takes longer than its deadline is broken


def patience(limit):
    """How long to look at what shall take no longer than this."""
    return 2 * limit * SLACK


class Figure:
    """What an attack has shown. Without a limit it is only told. `seen_up_to`: what the value could have been at most,
    since nobody looked longer or nothing lasted longer; a limit above that would always hold. `floor`: with less
    nothing was attacked."""

    def __init__(self, what, value, unit, limit=None, seen_up_to=None, floor=None):
        self.what, self.value, self.unit, self.limit = what, round(value, 3), unit, limit
        assert floor is None or value >= floor, f"nothing was attacked: {what}: {value}"
        if limit is not None and self.is_delay():
            self.limit = limit * SLACK
            assert seen_up_to is not None and self.limit < seen_up_to, f"the limit cannot be exceeded: {what}"

    def is_delay(self):
        return self.unit in ("s", "ms")

    def is_held(self):
        return self.limit is None or self.value <= self.limit

    def as_dict(self):
        return {"what": self.what, "value": self.value, "unit": self.unit, "limit": self.limit, "held": self.is_held()}


def attack(name, finding, deadline_s=60):
    """Registers a function from is_quick to figures."""
    def register(run):
        ATTACKS[name] = Attack(name, finding, run, deadline_s)
        return run
    return register


def comes_true(holds, patience_s):
    """Whether it does within this time: what the service does by itself, and nobody tells."""
    end = time.monotonic() + patience_s
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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


class ChildFailed(Exception):
    """A Child has ended by an error."""


class Refused(ChildFailed):
    """The kernel does not let a Child do what it was to do."""


class Child:
    """A forked process of a user that runs a function, which may tell(value) any number of times."""

    def __init__(self, uid, function):
        self._answers, tell_fd = os.pipe()
        self._buffer = b""
        self.pid = os.fork()
        if self.pid == 0:
            try:
                become(uid)
                function(lambda value: os.write(tell_fd, json.dumps({"told": value}).encode() + b"\n"))
            except Exception as error:  # pylint: disable=broad-except
                is_refused = isinstance(error, OSError) and not isinstance(error, ConnectionError)
                os.write(tell_fd, json.dumps({"error": repr(error), "is_refused": is_refused}).encode() + b"\n")
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
        message = json.loads(line)
        if "error" in message:
            raise (Refused if message["is_refused"] else ChildFailed)(message["error"])
        return message["told"]

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def start_hostile(uid, *arguments, **options):
    process = start_as(uid, [HOSTILE_CLIENT, *arguments], stdout=subprocess.PIPE, text=True, **options)
    assert process.stdout.readline() == "ready\n", f"hostile_client {arguments[0]} has failed"
    return process


def raise_descriptor_limit():
    """As far as this process may."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def kill_if_there(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


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
