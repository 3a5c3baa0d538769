"""Programs under seccomp filters that root attaches to: recorded, alive, and under the same filter as before."""

import os
import subprocess
import unittest

from profile_run import HEAP_PROFILE, program
from running_process import LONG_S, MAY_ATTACH, Attached, Running, changed_code_bytes, wait_until

MAY_SUSPEND = MAY_ATTACH and os.geteuid() == 0
KINDS = ("container", "service", "renderer")


def filtered(kind):
    return Running([program("filtered"), kind])


def status_of(pid, field):
    with open(f"/proc/{pid}/status") as file:
        return next(line.split()[1] for line in file if line.startswith(field + ":"))


@unittest.skipUnless(MAY_SUSPEND, "needs root that may suspend seccomp filters")
class FilteredTest(unittest.TestCase):
    def test_each_is_recorded_again_and_again_and_keeps_its_filter(self):
        for kind in KINDS:
            with self.subTest(kind), filtered(kind) as target:
                mode = status_of(target.pid, "Seccomp")
                files = os.listdir(f"/proc/{target.pid}/fd")
                for _ in range(3):
                    attached = Attached(target.pid, 200, ["-q"])
                    self.assertEqual(attached.result.returncode, 0, attached.result.stderr)
                    self.assertGreater(attached.stats["alloc_calls"], 0)
                    self.assertIsNone(target.process.poll())
                self.assertEqual(status_of(target.pid, "Seccomp"), mode)
                self.assertEqual(status_of(target.pid, "TracerPid"), "0")
                self.assertEqual(os.listdir(f"/proc/{target.pid}/fd"), files)
                self.assertEqual(changed_code_bytes(target.pid), 0)

    def test_strict_mode_which_forbids_to_read_the_clock_is_refused_and_nothing_happens(self):
        with filtered("strict") as target:
            attached = Attached(target.pid, 200)
            self.assertIn("it is under strict seccomp, which ends a process that reads the time stamp counter",
                          attached.result.stderr)
            self.assertIsNone(target.process.poll())
            self.assertEqual(status_of(target.pid, "TracerPid"), "0")

    def test_whoever_may_not_suspend_filters_is_told_and_nothing_happens(self):
        with filtered("renderer") as target:
            result = subprocess.run(["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", HEAP_PROFILE, "-p",
                                     str(target.pid), "-d", "100"], capture_output=True, text=True, check=False, timeout=LONG_S,
                                    env={**os.environ, "HEAPPROFD_DIRECTORY": f"/tmp/filtered-{os.getpid()}"})
            self.assertNotEqual(result.returncode, 0)
            self.assertIn("only root with CAP_SYS_ADMIN can suspend", result.stderr)
            self.assertIsNone(target.process.poll())
            wait_until(lambda: status_of(target.pid, "TracerPid") == "0")


if __name__ == "__main__":
    unittest.main()
