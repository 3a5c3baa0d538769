"""A program that is caught by its name is recorded as completely as one under heap_profile --."""

import glob
import json
import os
import shutil
import signal
import subprocess
import tempfile
import unittest

from profile_run import HEAP_PROFILE
from running_process import MAY_ATTACH, MAY_CATCH, Engine

CC1PLUS = glob.glob("/usr/lib/gcc/x86_64-linux-gnu/*/cc1plus")
SOURCE = "#include <map>\n#include <regex>\nstd::map<int, std::regex> patterns;\n"
PYTHON = "import json, decimal\nprint(len(json.dumps([{str(i): i} for i in range(20000)])))"
NODE = "console.log(JSON.stringify(Array.from({length: 20000}, (_, i) => ({i}))).length)"


@unittest.skipUnless(MAY_ATTACH and MAY_CATCH, "watching for new processes is not allowed here")
class AttachCountsTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.directory)
        self.stats = os.path.join(self.directory, "stats.json")
        self.env = {**os.environ, "HEAPPROFD_STATS_JSON": self.stats, "PYTHONHASHSEED": "0", "LC_ALL": "C"}

    def figures(self):
        with open(self.stats) as file:
            stats = json.load(file)
        self.assertEqual((stats["processes"], stats["lost_records"]), (1, 0))
        return stats["alloc_calls"], stats["alloc_bytes"]

    def preloaded(self, command):
        subprocess.run([HEAP_PROFILE, "-q", "-o", os.path.join(self.directory, "preloaded"), "--", *command], check=True,
                       env=self.env, stdout=subprocess.DEVNULL)
        return self.figures()

    def caught(self, command):
        with Engine() as engine:
            tool = subprocess.Popen(
                [HEAP_PROFILE, "-o", os.path.join(self.directory, "caught"), "-n", os.path.basename(command[0])],
                env={**self.env, **engine.env}, stderr=subprocess.PIPE, text=True)
            while "Profiling active" not in (line := tool.stderr.readline()):
                self.assertTrue(line)
            subprocess.run(command, check=True, env=self.env, stdout=subprocess.DEVNULL)
            tool.send_signal(signal.SIGINT)
            _, errors = tool.communicate(timeout=60)
            self.assertEqual(tool.returncode, 0, errors)
        return self.figures()

    def compare(self, command, calls=0, size=100):
        """By how much calls and bytes may differ: the two have different variables in their environments."""
        if not shutil.which(command[0]):
            self.skipTest(f"{command[0]} is not installed")
        # By a name that nothing else on the machine has.
        own = os.path.join(self.directory, "counted_" + os.path.basename(command[0]))
        shutil.copy(command[0], own)
        command = [own, *command[1:]]
        preloaded = self.preloaded(command)
        caught = self.caught(command)
        self.assertGreater(preloaded[0], 5)
        self.assertLessEqual(abs(preloaded[0] - caught[0]), calls, (preloaded, caught))
        self.assertLessEqual(abs(preloaded[1] - caught[1]), size, (preloaded, caught))

    def test_python(self):
        self.compare(["/usr/bin/python3", "-I", "-c", PYTHON])

    def test_node(self):
        # Its threads' timing decides about a few calls, from one run to the next.
        self.compare(["/usr/bin/node", "-e", NODE], calls=500, size=5_000_000)

    def test_git(self):
        self.compare(["/usr/bin/git", "help", "-a"])

    def test_sort(self):
        file = os.path.join(self.directory, "lines")
        with open(file, "w") as lines:
            lines.writelines(f"{i * 7919 % 100_003}\n" for i in range(100_000))
        self.compare(["/usr/bin/sort", "--parallel=1", file])

    def test_cc1plus(self):
        if not CC1PLUS:
            self.skipTest("g++ is not installed")
        source = os.path.join(self.directory, "source.cc")
        with open(source, "w") as file:
            file.write(SOURCE)
        # It hashes addresses: a few calls differ from one run to the next.
        self.compare([CC1PLUS[0], "-quiet", "-imultiarch", "x86_64-linux-gnu", source, "-o", "/dev/null"], calls=10, size=200_000)


if __name__ == "__main__":
    unittest.main()
