"""A program whose allocation functions get kernel probes (uprobes) while it is recorded, in any order.

An order is a text with a letter for each step:
  p P   attach / detach                       u U   probes on all functions on / off
  .     rounds of calls, and compare counts   r R   return probes on all functions on / off
  f     the same in a forked child            m M   a probe in malloc, behind its first instruction, on / off
"""

import ctypes
import json
import os
import shutil
import signal
import struct
import subprocess
import tempfile

from profile_run import HEAP_PROFILE, program
from running_process import DEADLINE_S, changed_code_bytes

PMU = "/sys/bus/event_source/devices/uprobe/type"
PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}[os.uname().machine]
CLOSE_ON_EXEC = 8
PER_ROUND = {"malloc": 2, "free": 5, "calloc": 1, "realloc": 1, "memalign": 1, "posix_memalign": 1}
ALLOCATIONS = 6
_libc = ctypes.CDLL(None, use_errno=True)


def open_probe(path, offset, tid, is_return=False):
    """A descriptor that counts hits; closing it removes the probe."""
    with open(PMU) as file:
        kind = int(file.read())
    name = ctypes.create_string_buffer(path.encode())
    attribute = ctypes.create_string_buffer(struct.pack("=IIQQQQQIIQQQQ", kind, 112, int(is_return), 0, 0, 0, 0, 0, 0,
                                                        ctypes.addressof(name), offset, 0, 0).ljust(112, b"\0"))
    fd = _libc.syscall(PERF_EVENT_OPEN, attribute, tid, -1, -1, CLOSE_ON_EXEC)
    if fd < 0:
        raise OSError(ctypes.get_errno(), "perf_event_open")
    return fd


def may_probe():
    if not os.path.exists(PMU):
        return False
    try:
        os.close(open_probe(program("probed"), 0x1000, os.getpid()))
        return True
    except OSError as error:
        return error.errno not in (1, 13)  # EPERM, EACCES; others are of the place


class Probed:
    """tests/programs/probed."""

    def __init__(self, threads=1, preload=None, wrapper=()):
        env = dict(os.environ)
        if preload:
            env["LD_PRELOAD"] = preload
        self.threads = threads
        self.process = subprocess.Popen([*wrapper, program("probed"), str(threads)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env=env)
        self.pid = self.process.pid
        self.places = {}  # offset in the file, address, file
        while (line := self.process.stdout.readline()) != "ready\n":
            _, name, offset, address, path = line.split()
            self.places[name] = int(offset), int(address), path

    def tell(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line.startswith("done "), f"the program died: {self.process.wait()}"
        return int(line.split()[1])

    def quit(self):
        self.process.stdin.write("quit\n")
        self.process.stdin.close()
        return self.process.wait(DEADLINE_S)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        if not self.process.stdin.closed:
            self.process.stdin.close()

    def tids(self):
        return [int(tid) for tid in os.listdir(f"/proc/{self.pid}/task")]

    def memory(self, name, size=16, offset=0):
        with open(f"/proc/{self.pid}/mem", "rb", 0) as memory:
            memory.seek(self.places[name][1] + offset)
            return memory.read(size)

    def file(self, name, size=16, offset=0):
        with open(self.places[name][2], "rb") as file:
            file.seek(self.places[name][0] + offset)
            return file.read(size)


class Probes:
    """Of all threads, on all functions."""

    def __init__(self, probed, is_return=False, places=None):
        self.fds = {}
        for name in PER_ROUND if places is None else places:
            offset, _, path = probed.places[name]
            self.fds[name] = [open_probe(path, offset + (places or {}).get(name, 0), tid, is_return)
                              for tid in probed.tids()]

    def hits(self):
        return {name: sum(int.from_bytes(os.read(fd, 8), "little") for fd in fds) for name, fds in self.fds.items()}

    def close(self):
        for fds in self.fds.values():
            for fd in fds:
                os.close(fd)
        self.fds = {}


class Recording:
    """heap_profile -p, from when its hooks are in."""

    def __init__(self, engine, probed, directory, options=()):
        self.stats = os.path.join(directory, "stats.json")
        self.out = tempfile.mkdtemp(dir=directory)
        self.tool = engine.tool("-p", str(probed.pid), "-o", self.out, "--no-children", "-d", "0", *options,
                                stderr=subprocess.PIPE, text=True, env_more={"HEAPPROFD_STATS_JSON": self.stats})
        self.text = ""
        while "Profiling active" not in (line := self.tool.stderr.readline()):
            assert line, f"it has ended: {self.text}"
            self.text += line

    def end(self):
        """Calls that were counted."""
        self.tool.send_signal(signal.SIGINT)
        self.text += self.tool.communicate(timeout=DEADLINE_S)[1]
        assert self.tool.returncode in (0, 4), self.text
        shutil.rmtree(self.out)
        with open(self.stats) as file:
            return json.load(file)["alloc_calls"]


class Order:
    """Performs one; `faults` are what was not as it should be."""

    def __init__(self, engine, probed, directory, rounds=100, options=()):
        self.engine, self.probed, self.directory, self.rounds, self.options = engine, probed, directory, rounds, options
        self.recording = self.entry = self.returning = self.middle = None
        self.expected = 0
        self.calls = 0  # of allocation functions and free, in all
        self.faults = []

    def perform(self, text):
        for at, letter in enumerate(text):
            try:
                self._step(letter)
            except AssertionError as error:
                self.faults.append(f"{text} step {at}: {error}")
                break
        for probes in (self.entry, self.returning, self.middle):
            if probes:
                probes.close()
        self.entry = self.returning = self.middle = None
        return self.faults

    def _step(self, letter):
        if letter == "p":
            self.recording, self.expected = Recording(self.engine, self.probed, self.directory, self.options), 0
        elif letter == "P":
            counted = self.recording.end()
            assert counted == self.expected, f"{counted} of {self.expected} allocations: {self.recording.text}"
            self.recording = None
            assert self._is_clean(), "its code is changed"
        elif letter in "uU":
            self.entry = self._switch(self.entry, letter == "u", Probes, False)
        elif letter in "rR":
            self.returning = self._switch(self.returning, letter == "r", Probes, True)
        elif letter in "mM":
            self.middle = self._switch(self.middle, letter == "m", Probes, False, {"malloc": 2})
        elif letter == "f":
            assert self.probed.tell(f"fork {self.rounds}") == 7 << 8, "the child died"
        else:
            self._run()

    def _switch(self, probes, is_on, kind, *arguments):
        if is_on:
            return kind(self.probed, *arguments)
        probes.close()
        return None

    def _is_clean(self):
        """But for what the kernel has put there."""
        if not (self.entry or self.returning or self.middle):
            return changed_code_bytes(self.probed.pid) == 0
        return all(self.probed.memory(name, 15, 1) == self.probed.file(name, 15, 1) for name in PER_ROUND
                   if not self.probed.file(name, 5) == b"\x0f\x1f\x44\0\0")

    def _run(self):
        before = [probes.hits() for probes in (self.entry, self.returning) if probes]
        self.probed.tell(f"rounds {self.rounds}")
        count = self.rounds * self.probed.threads
        self.calls += count * sum(PER_ROUND.values())
        if self.recording:
            self.expected += count * ALLOCATIONS
        after = [probes.hits() for probes in (self.entry, self.returning) if probes]
        for old, new in zip(before, after):
            for name, number in PER_ROUND.items():
                assert new[name] - old[name] == count * number, f"{new[name] - old[name]} hits of {name}"


# What was found to kill programs whose entries were patched, and everything around it.
ORDERS = [".u.p.P.U.", ".u.p.U.P.", ".p.u.P.U.", ".p.u.U.P.", ".r.p.P.R.", ".p.r.P.R.", ".p.r.R.P.", ".ur.p.U.R.P.",
          ".p.ur.P.RU.", ".puU.P.", ".pu.P.U.", ".puUP.", ".puPU.", ".pfufU.P.", ".prfRP."]
