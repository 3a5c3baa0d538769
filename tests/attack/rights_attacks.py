"""Programs that gain rights when they are executed (setuid, file capabilities), while whoever executes them is recorded by an
ordinary user: the kernel gives no rights to a program that such a user traces."""

import os
import shutil
import signal
import struct
import subprocess

from attack_tools import ALICE, ROOT, Figure, attack, comes_true, folder_of, patience, start_as
from profile_run import HEAP_PROFILE
from service_run import wait_for
from service_under_attack import Recorder, Service

CAP_NET_RAW = 1 << 13
VFS_CAP_EFFECTIVE_2 = 0x02000001  # linux/capability.h: revision 2, effective

# Whether the program that the shell starts has kept its rights: a line for each start.
LOOP = 'read go; i=0; while [ $i -lt {count} ]; do {command}; i=$((i+1)); done; echo over'
# Children that execute it up to 30 ms after they were forked, at work or asleep until then.
FORKER = """
import os, random, sys, time
sys.stdin.readline()
for i in range({count}):
    pid = os.fork()
    if pid == 0:
        end = time.monotonic() + random.random() * 0.03
        if i % 2:
            time.sleep(max(0, end - time.monotonic()))
        while time.monotonic() < end:
            pass
        os.execv({path!r}, {words!r})
    os.waitpid(pid, 0)
print("over", flush=True)
"""


def make_programs():
    """{what it is: (its command, what each start prints when it has its rights)}"""
    folder = folder_of(ROOT)
    os.chmod(folder, 0o755)
    setuid, capable = f"{folder}/whoami_as_root", f"{folder}/show_rights"
    shutil.copy("/usr/bin/id", setuid)
    os.chmod(setuid, 0o4755)
    shutil.copy("/bin/grep", capable)
    os.chmod(capable, 0o755)
    os.setxattr(capable, "security.capability", struct.pack("<5I", VFS_CAP_EFFECTIVE_2, CAP_NET_RAW, 0, 0, 0))
    return {"setuid": ([setuid, "-u"], "0"),
            "with file capabilities": ([capable, "CapEff", "/proc/self/status"], f"CapEff:\t{CAP_NET_RAW:016x}")}


class Starter:
    """A process of alice's that starts a program again and again when it is told to."""

    def __init__(self, command, *prefix):
        self._output = os.path.join(folder_of(ALICE), "starts")
        with open(self._output, "wb") as output:
            self.process = start_as(ALICE, [*prefix, *command], stdin=subprocess.PIPE, stdout=output,
                                    stderr=subprocess.DEVNULL, env={"PATH": os.environ["PATH"]})
        self.pid = self.process.pid

    def _lines(self):
        with open(self._output) as output:
            return output.read().splitlines()

    def run(self):
        """What the starts have printed."""
        self.process.stdin.write(b"go\n")
        self.process.stdin.close()
        comes_true(lambda: "over" in self._lines() or self.process.poll() is not None, patience(200))
        lines = self._lines()
        self.process.wait()
        assert "over" in lines, lines[-3:]
        return lines[:lines.index("over")]


class OwnRecorder:
    """Alice's heap_profile, with a service of her own."""

    def __init__(self, *options):
        directory = folder_of(ALICE)
        self._log = f"{directory}/log"
        with open(self._log, "wb") as log:
            self._process = start_as(ALICE, [HEAP_PROFILE, "-o", f"{directory}/out", *options], stdin=subprocess.DEVNULL,
                                     stdout=log, stderr=log,
                                     env={"PATH": os.environ["PATH"], "HEAPPROFD_DIRECTORY": f"{directory}/service"})
        wait_for(lambda: "Profiling active" in self.text() or self._process.poll() is not None, "her recording begins")
        assert self._process.poll() is None, self.text()

    def text(self):
        with open(self._log, errors="replace") as log:
            return log.read()

    def end(self):
        self._process.send_signal(signal.SIGINT)
        self._process.wait(timeout=patience(60))


def shell_of(command, count):
    return ["/bin/sh", "-c", LOOP.format(count=count, command=" ".join(command))]


def forker_of(command, count):
    return ["/usr/bin/python3", "-c", FORKER.format(count=count, path=command[0], words=command)]


def by_own_recording(make_starter, options):
    def starts(command, count):
        starter = Starter(make_starter(command, count))
        recorder = OwnRecorder(*options(starter, os.path.basename(command[0])))
        lines = starter.run()
        recorder.end()
        return lines
    return starts


def by_launch(command, count):
    return Starter(shell_of(command, count), HEAP_PROFILE, "-q", "-o", f"{folder_of(ALICE)}/out", "--").run()


def by_root(command, count):
    with Service() as place:
        Recorder(place, ROOT, "-n", os.path.basename(command[0]))
        return Starter(shell_of(command, count)).run()


# Ways of recording whoever starts the program, or the program itself.
WAYS = {
    "-n NAME": by_own_recording(shell_of, lambda starter, name: ["-n", name]),
    "-n '*'": by_own_recording(shell_of, lambda starter, name: ["-n", "*"]),
    "-p of a shell": by_own_recording(shell_of, lambda starter, name: ["-p", str(starter.pid)]),
    "-p of what forks": by_own_recording(forker_of, lambda starter, name: ["-p", str(starter.pid)]),
    "-- shell": by_launch,
    "-n NAME of root's": by_root,
}


@attack("lost-rights", "", 600)
def lost_rights(is_quick):
    """Alice starts programs that gain rights while her recordings, by every way there is, are about them."""
    count = 30 if is_quick else 1000
    figures = []
    for what, (command, expected) in make_programs().items():
        for way, starts in WAYS.items():
            lines = starts(command, count)
            figures += [Figure(f"of {count} starts {what}, {way}: seen", len(lines), "", floor=count),
                        Figure(f"of {count} starts {what}, {way}: lost rights", sum(line != expected for line in lines), "", 0)]
    return figures
