"""Kernel probes (uprobes, as bpftrace and perf probe set them) and debuggers on functions that are hooked: the program lives,
every call is counted by both, and the code is as before."""

import os
import shutil
import subprocess
import tempfile
import time
import unittest

from probe_orders import ORDERS, Order, Probed, Probes, Recording, may_probe
from profile_run import PROGRAMS
from running_process import MAY_ATTACH, Engine, changed_code_bytes, wait_until

SHORT = [".p.u.P.U.", ".ur.p.U.R.P.", ".puUP.", ".puPU."]
ENTRIES = {"a marker": "1", "a no-operation": "2", "a jump": "3"}
GDB = shutil.which("gdb")


@unittest.skipUnless(MAY_ATTACH and may_probe(), "attaching, or probes of the kernel, are not allowed here")
class ProbesTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.directory)
        self.engine = Engine()
        self.addCleanup(self.engine.close)

    def probed(self, threads=1, preload=None):
        probed = Probed(threads, preload)
        self.addCleanup(probed.kill)
        return probed

    def perform(self, order, **options):
        probed = self.probed(**options)
        self.assertEqual(Order(self.engine, probed, self.directory).perform(order), [])
        self.assertEqual(probed.quit(), 21)

    def record(self, probed):
        return Recording(self.engine, probed, self.directory)

    def test_orders(self):
        for order in ORDERS[:5]:
            with self.subTest(order):
                self.perform(order)

    def test_return_probes_and_forks(self):
        for order in ORDERS[5:]:
            with self.subTest(order):
                self.perform(order)

    def test_threads(self):
        for order in SHORT:
            with self.subTest(order):
                self.perform(order, threads=4)

    def test_functions_that_begin_otherwise(self):
        for begin, number in ENTRIES.items():
            for order in SHORT:
                with self.subTest(f"{begin}: {order}"):
                    self.perform(order, preload=os.path.join(PROGRAMS, f"libbegins_{number}.so"))

    def test_a_probe_is_told(self):
        probed = self.probed()
        recording = self.record(probed)
        probes = Probes(probed, places={"malloc": 0})
        end = time.monotonic() + 5  # it is looked for once a second
        while time.monotonic() < end:
            probed.tell("mallocs 10")
        recording.end()
        probes.close()
        self.assertIn(f"a kernel probe (bpftrace, perf probe) is on malloc of process {probed.pid}: calls there take longer "
                      "until it is removed", recording.text)
        self.assertEqual(probed.quit(), 21)

    def test_a_probe_inside_of_the_jump_ends_recording_the_function(self):
        probed = self.probed()
        recording = self.record(probed)
        before = probed.memory("malloc")
        self.assertNotEqual(before, probed.file("malloc"))
        probes = Probes(probed, places={"malloc": 2})
        wait_until(lambda: probed.memory("malloc", 12, 3) == probed.file("malloc", 12, 3))
        probed.tell("rounds 10")
        probes.close()
        self.assertEqual(changed_code_bytes(probed.pid) > 0, True)  # the other functions'
        self.assertEqual(recording.end(), 40)
        self.assertIn(f"cannot record malloc of process {probed.pid} any more: a probe was put behind the first instruction, "
                      "where our jump is; probe the function's begin instead", recording.text)
        self.assertEqual(changed_code_bytes(probed.pid), 0)
        self.assertEqual(probed.quit(), 21)

    def test_a_probe_behind_the_first_instruction_is_left_alone(self):
        probed = self.probed()
        probes = Probes(probed, places={"malloc": 2})
        recording = self.record(probed)
        probed.tell("rounds 10")
        self.assertEqual(recording.end(), 40)
        self.assertEqual(probes.hits()["malloc"], 20)
        self.assertRegex(recording.text, f"cannot record all of process {probed.pid}: no hook for malloc of .*libc.so.6: a kernel "
                         "probe, or a debugger's breakpoint, is in its first instructions")
        recording = self.record(probed)
        probed.tell("mallocs 10")
        recording.end()
        self.assertRegex(recording.text, "nothing recorded: the program called none of the functions that are hooked, and there "
                         "is no hook for malloc of .*: a kernel probe")
        probes.close()
        self.assertEqual(changed_code_bytes(probed.pid), 0)
        self.assertEqual(probed.quit(), 21)

    def test_code_that_is_not_the_files_is_left_alone(self):
        probed = self.probed()
        changed = bytes([probed.file("malloc", 1, 4)[0] ^ 1])
        with open(f"/proc/{probed.pid}/mem", "r+b", 0) as memory:
            memory.seek(probed.places["malloc"][1] + 4)
            memory.write(changed)
            attached = self.engine.attach(probed.pid, 100)
            self.assertIn("its code is not that of its file", attached.result.stderr)
            self.assertEqual(probed.memory("malloc", 1, 4), changed)
            memory.seek(probed.places["malloc"][1] + 4)
            memory.write(probed.file("malloc", 1, 4))
        self.assertEqual(probed.quit(), 21)

    def test_return_probes_hide_callers_and_are_named(self):
        probed = self.probed()
        recording = Recording(self.engine, probed, self.directory, ["-i", "1"])
        probes = Probes(probed, is_return=True, places={"malloc": 0})
        probed.tell("mallocs 300")
        probes.close()
        self.assertEqual(recording.end(), 300)
        self.assertRegex(recording.text, r"! \d+ stacks end early, at \[return probe\]: the kernel hides the callers of "
                         "functions with a return probe")
        self.assertNotIn("no way was found", recording.text)
        self.assertEqual(probed.quit(), 21)

    @unittest.skipUnless(GDB, "gdb is not installed")
    def test_a_debugger_comes_and_goes(self):
        for breakpoint in ("break malloc", "break *malloc", "break *malloc+2", "hbreak *malloc"):
            with self.subTest(breakpoint):
                probed = self.probed()
                recording = self.record(probed)
                command = [GDB, "-nx", "-q", "-batch", "-p", str(probed.pid)]
                steps = [breakpoint, "ignore 1 3", "shell touch " + os.path.join(self.directory, "set"), "continue", "delete",
                         "detach"]
                for step in steps:
                    command += ["-ex", step]
                debugger = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                self.addCleanup(debugger.kill)
                wait_until(lambda: os.path.exists(os.path.join(self.directory, "set")) or debugger.poll() is not None)
                os.unlink(os.path.join(self.directory, "set"))
                if breakpoint.startswith("hbreak"):  # virtual machines may never stop at one
                    debugger.send_signal(2)
                probed.tell("mallocs 10")
                output = debugger.communicate(timeout=60)[0]
                self.assertEqual(recording.end(), 10, output)
                self.assertEqual(changed_code_bytes(probed.pid), 0)
                self.assertEqual(probed.quit(), 21)


if __name__ == "__main__":
    unittest.main()
