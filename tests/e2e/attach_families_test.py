"""What processes that are attached to start, and what they had started before."""

import os
import subprocess
import sys
import tempfile
import unittest

from profile_run import program
from running_process import MAY_ATTACH, MAY_CATCH, Engine, Running, dumped_now, wait_until
from service_run import Recording

# Has a child from the start. Forks another one at "fork", a daemon at "daemon", and starts the program of its argument at any
# other line, without a call of malloc in between; answers with the id. Its children end with it.
PARENT = """
import os, subprocess, sys, time
parent = os.getpid()
def child():
    kept = []
    while os.path.exists(f"/proc/{parent}/root"):
        kept.append(bytearray(5000))
        time.sleep(0.001)
    os._exit(0)
before = os.fork()
if before == 0:
    child()
print("ready")
print(before, flush=True)
for line in sys.stdin:
    if line == "fork\\n":
        pid = os.fork()
        if pid == 0:
            child()
    elif line == "daemon\\n":
        ends = os.pipe()
        if os.fork() == 0:
            os.setsid()
            pid = os.fork()
            if pid == 0:
                child()
            os.write(ends[1], str(pid).encode())
            os._exit(0)
        os.wait()
        pid = int(os.read(ends[0], 20))
    else:
        pid = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL).pid
    print(pid, flush=True)
"""


DAEMON = """#!/usr/bin/python3
import os, sys, time
if os.fork() != 0:
    os._exit(0)
os.setsid()
if os.fork() != 0:
    os._exit(0)
with open(sys.argv[1] + ".new", "w") as file:
    file.write(str(os.getpid()))
os.rename(sys.argv[1] + ".new", sys.argv[1])
kept = []
while os.path.exists(sys.argv[1]):
    kept.append(bytearray(5000))
    time.sleep(0.001)
"""


class Parent(Running):
    def __init__(self):
        super().__init__([sys.executable, "-c", PARENT, program("patient"), "50"], stdin=-1)
        self.before = int(self.process.stdout.readline())

    def start(self, how):
        self.process.stdin.write(how + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())


@unittest.skipUnless(MAY_ATTACH, "attaching to every process is not allowed here")
class AttachFamiliesTest(unittest.TestCase):
    def test_forked_children_and_executed_programs_are_recorded_from_then_on(self):
        with Parent() as parent, Engine() as engine:
            recording = Recording(engine, ["-p", str(parent.pid), "--no-report"]).wait_active()
            for how in "execute", "fork", "daemon", "execute":
                pid = parent.start(how)
                wait_until(lambda pid=pid: pid in dumped_now(engine, recording))
            self.assertNotIn(parent.before, dumped_now(engine, recording))
            recording.finish()
        self.assertIn(
            f"cannot record what process {parent.pid} has started before: 1 process of its program runs already, and only those "
            f"that it starts from now on are followed; name them, too, with -p {parent.pid},{parent.before}, or all by -n",
            recording.stderr)

    @unittest.skipUnless(MAY_CATCH, "catching every program is not allowed here")
    def test_a_daemon_that_is_caught_at_its_start_is_recorded_when_its_starters_have_ended(self):
        with tempfile.TemporaryDirectory() as directory, Engine() as engine:
            daemon, says = os.path.join(directory, "becomes_daemon"), os.path.join(directory, "pid")
            with open(daemon, "w") as file:
                file.write(DAEMON)
            os.chmod(daemon, 0o755)
            recording = Recording(engine, ["-n", "becomes_daemon", "--no-report"]).wait_active()
            subprocess.run([daemon, says], check=True)
            wait_until(lambda: os.path.exists(says))
            with open(says) as file:
                pid = int(file.read())
            wait_until(lambda: pid in dumped_now(engine, recording))
            os.remove(says)
            recording.finish()
            self.assertGreater(sum(sample.self_allocated for sample in recording.dumps_of(pid)[-1].samples), 0)

    def test_whoever_is_named_or_not_wanted_is_not_missed(self):
        with Parent() as parent, Engine() as engine:
            for options in ["-p", f"{parent.pid},{parent.before}"], ["-p", str(parent.pid), "--no-children"]:
                recording = Recording(engine, [*options, "--no-report"]).wait_active()
                recording.finish()
                self.assertNotIn("has started before", recording.stderr)


if __name__ == "__main__":
    unittest.main()
