"""What processes that are attached to start, and what they had started before."""

import sys
import unittest

from profile_run import program
from running_process import MAY_ATTACH, Engine, Running, dumped_now, wait_until
from service_run import Recording

# Has a child from the start. Forks another one at "fork", and starts the program of its argument at any other line, without
# a call of malloc in between; answers with the id. Its children end with it.
PARENT = """
import os, subprocess, sys, time
def child():
    parent, kept = os.getppid(), []
    while os.getppid() == parent:
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
    else:
        pid = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL).pid
    print(pid, flush=True)
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
            for how in "execute", "fork", "execute":
                pid = parent.start(how)
                wait_until(lambda pid=pid: pid in dumped_now(engine, recording))
            self.assertNotIn(parent.before, dumped_now(engine, recording))
            recording.finish()
        self.assertIn(
            f"cannot record what process {parent.pid} has started before: 1 process of its program runs already, and only those "
            f"that it starts from now on are followed; name them, too, with -p {parent.pid},{parent.before}, or all by -n",
            recording.stderr)

    def test_whoever_is_named_or_not_wanted_is_not_missed(self):
        with Parent() as parent, Engine() as engine:
            for options in ["-p", f"{parent.pid},{parent.before}"], ["-p", str(parent.pid), "--no-children"]:
                recording = Recording(engine, [*options, "--no-report"]).wait_active()
                recording.finish()
                self.assertNotIn("has started before", recording.stderr)


if __name__ == "__main__":
    unittest.main()
