"""tools/bench peers: one small program under all that are installed, and what it says of those that are not."""

import os
import pathlib
import subprocess
import sys
import unittest
from unittest import mock

import bench_peers

TOOLS = pathlib.Path(__file__).resolve().parent
SMALL = "sqlite3, 3,000 rows"


def rows(text):
    """{tool: cells} of the table."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| ")]
    return {cells[1]: cells[2:] for cells in lines}


class Peers(unittest.TestCase):
    def bench(self, *arguments):
        run = subprocess.run([sys.executable, "-B", TOOLS / "bench", "peers", "--heap-profile", os.environ["HEAP_PROFILE"],
                              "--rounds", "1", "--only", SMALL, *arguments], capture_output=True, text=True, timeout=240)
        self.assertEqual(run.returncode, 0, run.stderr)
        return rows(run.stdout)

    def test_every_tool_has_figures_or_is_not_installed(self):
        found = self.bench("--minutes", "3")
        expected = [tool.name for tool in bench_peers.tools("heap_profile", "/out", "/bin/true")]
        self.assertEqual([name for name in found if name != "tool"], expected)
        for name in expected:
            if "installed" in found[name][0] or "without profiling" in found[name][0]:
                continue
            self.assertGreater(float(found[name][1].removesuffix(" s")), 0, found[name])
            if name.startswith("heap_profile"):
                self.assertGreater(float(found[name][6].removesuffix(" s")), 0, found[name])
                self.assertGreater(int(found[name][5].removesuffix(" KiB")), 0, found[name])

    def test_it_ends_when_the_time_is_over(self):
        self.assertEqual(self.bench("--minutes", "0")["heaptrack"][0], "not measured: the time was over")

    def test_what_is_not_installed_is_told(self):
        with mock.patch.object(bench_peers, "library", return_value=""), mock.patch.object(bench_peers.shutil, "which", return_value=None):
            missing = {tool.name: tool.missing for tool in bench_peers.tools("heap_profile", "/out", "/bin/true")}
        self.assertEqual(missing.pop("plain"), "")
        for name, reason in missing.items():
            self.assertEqual("is not installed" in reason, not name.startswith("heap_profile"), name)


if __name__ == "__main__":
    unittest.main()
