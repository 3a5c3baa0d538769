"""What surrounds a run: the environment of children, a full disk, a profiler that dies."""

import os
import signal
import subprocess
import tempfile
import time
import unittest

from profile_run import HEAP_PROFILE, program, run

DEADLINE_S = 60


def can_mount(directory):
    return subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", directory],
                          capture_output=True).returncode == 0


class Environment(unittest.TestCase):
    def test_a_child_without_environment_runs_unharmed(self):
        result = run(["/usr/bin/env", "-i", "/bin/sh", "-c", "echo ran"], ["-i", "1"])
        self.assertEqual((result.exit_code, result.stdout), (0, "ran\n"), result.stderr)

    def test_a_script_is_profiled_through_its_interpreter(self):
        with tempfile.TemporaryDirectory() as directory:
            script = os.path.join(directory, "script")
            with open(script, "w") as file:
                file.write("#!/usr/bin/perl\nmy @kept = map { 'x' x 1000 } 1..2000; print 'ok';\n")
            os.chmod(script, 0o755)
            result = run([script])
            self.assertEqual((result.exit_code, result.stdout), (0, "ok"), result.stderr)
            self.assertGreater(result.main.total("alloc_space"), 1_000_000)

    def test_standard_input_reaches_the_program(self):
        with tempfile.TemporaryDirectory() as directory:
            finished = subprocess.run([HEAP_PROFILE, "-q", "-o", directory, "--", "/bin/cat"], input="a line\n",
                                      capture_output=True, text=True, timeout=DEADLINE_S)
        self.assertEqual((finished.returncode, finished.stdout), (0, "a line\n"))

    def test_a_full_disk_is_named_and_the_exit_code_is_not_success(self):
        with tempfile.TemporaryDirectory() as directory:
            if not can_mount(directory):
                self.skipTest("mounting is not allowed here")
            try:
                with open(os.path.join(directory, "filler"), "wb") as filler:
                    filler.write(b"x" * (60 << 10))
                finished = subprocess.run(
                    [HEAP_PROFILE, "-i", "1", "-o", os.path.join(directory, "out"), "--", "/usr/bin/python3", "-c",
                     "import json, decimal"], capture_output=True, text=True, timeout=DEADLINE_S)
            finally:
                subprocess.run(["umount", directory], check=True)
        self.assertEqual(finished.returncode, 1, finished.stderr)
        self.assertIn("No space left on device", finished.stderr)

    def test_a_program_outlives_a_profiler_that_is_killed(self):
        script = ("import sys\n"
                  "print('ready', flush=True)\n"
                  "sys.stdin.readline()\n"
                  "kept = [bytearray(50_000) for _ in range(2000)]\n"
                  "print('done', len(kept), flush=True)\n")
        with tempfile.TemporaryDirectory() as directory:
            process = subprocess.Popen([HEAP_PROFILE, "-i", "1", "-o", directory, "--", "/usr/bin/python3", "-c", script],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       text=True)
            self.assertEqual(process.stdout.readline(), "ready\n")
            process.send_signal(signal.SIGKILL)
            process.wait()
            begin = time.monotonic()
            out, _ = process.communicate("\n", timeout=DEADLINE_S)
        self.assertEqual(out, "done 2000\n")
        self.assertLess(time.monotonic() - begin, DEADLINE_S / 2, "the program waited for a dead profiler")


if __name__ == "__main__":
    unittest.main()
