"""Heaps that programs register through heapprofd/heap_profile.h."""

import json
import math
import unittest

from profile_run import VIEWS, program, run

KNOWN = [program("custom_heaps")]


class CustomHeaps(unittest.TestCase):
    def check_exactly(self, result):
        for heap, functions in json.loads(result.stdout).items():
            for function, (count, size, live_count, live_size) in functions.items():
                found = result.heap(heap).of(function)
                self.assertEqual(tuple(found[view] for view in VIEWS), (count, size, live_count, live_size), function)

    def test_each_heap_has_a_profile_of_its_own(self):
        result = run(KNOWN, ["-i", "1", "--all-heaps"])
        self.assertEqual(result.exit_code, 0, result.stderr)
        self.assertEqual({p.heap for p in result.pprofs}, {"libc.malloc", "com.example.blocks", "com.example.slots"})
        self.check_exactly(result)
        self.assertEqual(result.heap("libc.malloc").of("takes_blocks")["space"], 250 * 1024)

    def test_stacks_begin_with_the_caller_of_the_report(self):
        result = run(KNOWN, ["-i", "1", "--all-heaps"])
        for functions, _ in result.heap("com.example.blocks").stacks():
            self.assertEqual(functions[:3], ["block_alloc", "takes_blocks", "main"])

    def test_estimates_lie_within_five_standard_errors(self):
        result = run(KNOWN + ["50"], ["--all-heaps", "-i", "512"])
        for heap, functions in json.loads(result.stdout).items():
            for function, (count, size, _, _) in functions.items():
                p = -math.expm1(-(size / count) / 512) if size / count < 512 else 1
                error = math.sqrt(count * (1 - p) / p)
                found = result.heap(heap).of(function)
                self.assertLessEqual(abs(found["alloc_objects"] - count), 5 * error + 1, function)

    def test_without_a_wish_only_malloc_is_recorded(self):
        result = run(KNOWN, ["-i", "1"])
        self.assertEqual({p.heap for p in result.pprofs}, {"libc.malloc"})

    def test_named_heaps_have_their_own_intervals(self):
        result = run(KNOWN, ["--heaps", "com.example.blocks=1,com.example.slots"])
        self.assertEqual({p.heap for p in result.pprofs}, {"com.example.blocks", "com.example.slots"})
        self.assertEqual(result.heap("com.example.blocks").profile.period, 1)
        self.assertEqual(result.heap("com.example.slots").profile.period, 4096)
        self.assertEqual(result.heap("com.example.blocks").of("takes_blocks")["space"], 256000)

    def test_excluded_heaps_are_left_out(self):
        result = run(KNOWN, ["-i", "1", "--all-heaps", "--exclude-heaps", "com.example.slots,libc.malloc"])
        self.assertEqual({p.heap for p in result.pprofs}, {"com.example.blocks"})

    def test_the_program_runs_the_same_without_a_profiler(self):
        import subprocess
        self.assertEqual(subprocess.run(KNOWN, capture_output=True, text=True).returncode, 0)


if __name__ == "__main__":
    unittest.main()
