"""The unsampled path of the hooks is pinned in instructions, which no noise can change."""

import os
import re
import subprocess
import tempfile
import unittest

from profile_run import HEAP_PROFILE, program

# Instructions that the hooks add to calls that are not sampled.
MALLOC = 14
FREE = 16
# What one more unit of known_stacks' scale adds.
MALLOCS = 3000 + 2000 + 1000 + 20 + 5000
FREES = MALLOCS - (3000 + 1000 + 100 + 20 + 1)


def instructions(prefix, scale):
    """Executed by known_stacks at this scale."""
    with tempfile.TemporaryDirectory() as directory:
        result = subprocess.run(
            [*prefix, "valgrind", "--tool=callgrind", f"--callgrind-out-file={directory}/out",
             program("known_stacks"), str(scale)],
            capture_output=True, text=True, check=True, env={**os.environ, "TMPDIR": directory})
        return int(re.search(r"Collected : (\d+)", result.stderr)[1])


class InstructionCount(unittest.TestCase):
    def test_a_call_that_is_not_sampled_costs_what_it_costs(self):
        profiled = [HEAP_PROFILE, "-q", "-i", "1000000000", "--"]
        plain = instructions([], 3) - instructions([], 2)
        with_us = instructions(profiled, 3) - instructions(profiled, 2)
        expected = MALLOC * MALLOCS + FREE * FREES
        self.assertAlmostEqual((with_us - plain) / expected, 1, delta=0.01)

    def test_a_report_is_one_load_and_one_branch_while_nobody_records(self):
        library = os.path.join(os.environ["BUILD_DIRECTORY"], "src", "client", "libheapprofd_client.so")
        for function in ("AHeapProfile_reportAllocation", "AHeapProfile_reportSample", "AHeapProfile_reportFree",
                         "heapprofd_label_pop"):
            listing = subprocess.run(["objdump", "-d", "--no-show-raw-insn", f"--disassemble={function}", library],
                                     capture_output=True, text=True, check=True).stdout
            path = re.findall(r"^\s+[0-9a-f]+:\s+(.*)$", listing, re.MULTILINE)
            path = path[:next(i for i, line in enumerate(path) if line.startswith("ret")) + 1]
            self.assertEqual(sum("(%r" in line for line in path), 1, path)
            self.assertEqual(sum(line.startswith("j") for line in path), 1, path)
            self.assertLessEqual(len(path), 5, path)


if __name__ == "__main__":
    unittest.main()
