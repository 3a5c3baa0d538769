"""A whole recording under the emulator that runs the tests of another architecture: the engine and a program of which
the numbers are known, both emulated."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

EMULATOR = os.environ["EMULATOR"].split()
BUILD = pathlib.Path(os.environ["BUILD_DIRECTORY"])
PROGRAM = BUILD / "tests/programs/known_stacks"


def heap_profile(*arguments, **kwargs):
    return subprocess.run([*EMULATOR, BUILD / "src/cli/heap_profile", *arguments], capture_output=True, text=True,
                          timeout=300, check=False, **kwargs)


class Recording(unittest.TestCase):
    def recorded(self):
        """What the program has counted, figures, stacks; figures are None if files of it did not open in time."""
        with tempfile.TemporaryDirectory() as folder:
            trace = pathlib.Path(folder) / "out/raw-trace"
            # Relative: an absolute path that root looks up part by part begins at what is / to the emulator, its libraries' tree.
            ran = heap_profile("-i", "1", "-o", "out", "--", *EMULATOR, PROGRAM, cwd=folder)
            self.assertEqual(ran.returncode, 0, ran.stderr)
            truth = json.loads(next(line for line in ran.stdout.splitlines() if line.startswith("{")))
            stats = heap_profile("stats", "--json", trace)
            folded = heap_profile("export", "--format", "folded", "--view", "space", trace).stdout
            is_late = "nothing recorded" in ran.stderr or "[unknown]" in folded
            return truth, None if is_late else json.loads(stats.stdout), folded

    def test_totals_are_exact_and_stacks_are_those_of_the_program(self):
        # Each file is opened by a process, which takes 30 ms in an emulator: on a busy machine more than it may.
        for _ in range(10):
            truth, stats, folded = self.recorded()
            if stats:
                break
        self.assertTrue(stats, folded)
        calls, size, _, live = map(sum, zip(*truth.values()))
        [heap] = stats["processes"][0]["heaps"]
        # Beside what the program counts: the buffer of its standard output.
        buffers = heap["alloc_calls"] - calls
        self.assertIn(buffers, (1, 2), heap)
        self.assertLessEqual(heap["alloc_bytes"] - size, buffers * 4096)
        self.assertLessEqual(heap["live_bytes"] - live, buffers * 4096)
        self.assertGreaterEqual(heap["live_bytes"], live)
        # By size, which no two of its functions share. Without system call filters root reads no symbols, so that
        # frames may have no names but those of files; each stack is main's, two functions further in.
        stacks = dict(line.rsplit(" ", 1) for line in folded.splitlines())
        sizes = {int(count): stack.split(";") for stack, count in stacks.items()}
        for name, (_, _, _, bytes_live) in truth.items():
            self.assertIn(bytes_live, sizes, (name, folded))
            self.assertGreaterEqual(len(sizes[bytes_live]), 4, (name, folded))


if __name__ == "__main__":
    unittest.main()
