"""Exact totals: a program that is caught by its name is recorded as completely as one under heap_profile --, and so are children."""

import glob
import json
import os
import shutil
import signal
import subprocess
import tempfile
import unittest

from profile_run import HEAP_PROFILE, program
from running_process import MAY_ATTACH, MAY_CATCH, Engine, Running, child_named, state_of, wait_until

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


CHILDREN = 20
CALLS = 500
INTERVALS = ["4096", "65536", "524288"]
EARLY = """import ctypes, os, sys
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
print("ready", flush=True)
sys.stdin.readline()
gate, opener = os.pipe()
for _ in range(3):
    if os.fork() == 0:
        os.close(opener)
        for _ in range(600):
            libc.malloc(10000)
        os.read(gate, 1)
        libc.malloc(10000)  # in a session of its own
        os._exit(0)
sys.stdin.read()
os.close(opener)
for _ in range(3):
    os.wait()
"""
WAYS = ["fork", "killed", "vfork", "spawn", "again", "together"]


class ChildrenTest(unittest.TestCase):
    """Totals over all processes are exact, however short the lives of children are."""

    def setUp(self):
        self.directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.directory)
        self.stats = os.path.join(self.directory, "stats.json")
        self.env = {**os.environ, "HEAPPROFD_STATS_JSON": self.stats}

    def command(self, way, children=CHILDREN):
        return [program("short_children"), way, str(children), str(CALLS)]

    def tool(self, *arguments):
        return [HEAP_PROFILE, "-o", tempfile.mkdtemp(dir=self.directory), *arguments]

    def check(self, message, calls=CHILDREN * CALLS):
        with open(self.stats) as file:
            stats = json.load(file)
        self.assertEqual((stats["alloc_calls"], stats["alloc_bytes"]), (calls + 7, 8 * (calls + 7)), message)
        return stats

    def preloaded(self, way, interval, tool=None, **options):
        return subprocess.run([*(tool or self.tool("-i", interval)), "--", *self.command(way, **options)], env=self.env,
                              check=True, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)

    def totals_by_sql(self, tool):
        query = ("""SELECT sum(exact_alloc_count), sum(exact_alloc_size) FROM heap_dump
                     WHERE id IN (SELECT max(id) FROM heap_dump GROUP BY upid, heap_name);
                   SELECT sum(count), sum(uncounted), sum(alloc_count), sum(alloc_size) FROM heap_profile_unsampled_children;""")
        answer = subprocess.run([HEAP_PROFILE, "query", "--csv", os.path.join(tool[tool.index("-o") + 1], "raw-trace"), query],
                                check=True, capture_output=True, text=True, timeout=60).stdout
        own, children = ([int(cell) for cell in line.split(",")] for line in answer.split() if line[0].isdigit())
        return {"unsampled_children": children[0], "alloc_calls": own[0] + children[2], "alloc_bytes": own[1] + children[3]}

    def attached(self, command, interval, *options):
        """What heap_profile -p says of a program that begins when its standard input ends."""
        with Running(command, stdin=subprocess.PIPE) as running, Engine() as engine, subprocess.Popen(
                self.tool("-i", interval, *options, "-p", str(running.pid)), env={**self.env, **engine.env}, stderr=subprocess.PIPE,
                text=True) as tool:
            while "Profiling active" not in (line := tool.stderr.readline()):
                self.assertTrue(line)
            running.process.stdin.close()
            running.process.stdin = None
            self.assertEqual(running.process.wait(timeout=60), 0)
            return tool.communicate(timeout=60)[1]

    def test_preloaded(self):
        for way in WAYS:
            for interval in INTERVALS:
                with self.subTest(way, interval=interval):
                    self.check(f"{way}: {self.preloaded(way, interval).stderr}")

    def test_children_that_are_not_answered_in_time_count_on(self):
        children = 2
        with subprocess.Popen([*self.tool("-i", "1"), "--", *self.command("killed", children=children)], env=self.env, text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as tool:
            self.assertEqual(tool.stdout.readline(), "ready\n")
            running = child_named(tool.pid, "short_children")
            tool.send_signal(signal.SIGSTOP)
            tool.stdin.close()
            tool.stdin = None
            wait_until(lambda: state_of(running) == "Z")
            tool.send_signal(signal.SIGCONT)
            stderr = tool.communicate(timeout=60)[1]
        self.assertRegex(stderr, r"! 2 programs were not recorded .*: ended, or waiting no longer")
        self.check(stderr, calls=children * CALLS)

    @unittest.skipUnless(MAY_ATTACH, "attaching is not allowed here")
    def test_attached(self):
        for way in set(WAYS) - {"vfork", "spawn"}:  # a program that is executed is another one
            for interval in INTERVALS:
                with self.subTest(way, interval=interval):
                    errors = self.attached(self.command(way), interval)
                    self.check(errors)

    def processes_dumped(self, engine, trace):
        subprocess.run([HEAP_PROFILE, "mark", "now"], env={**os.environ, **engine.env}, check=True, capture_output=True)
        answer = subprocess.run([HEAP_PROFILE, "query", "--csv", trace, "SELECT count(DISTINCT upid) FROM heap_dump"], check=False,
                                capture_output=True, text=True, timeout=60)
        return int(answer.stdout.split()[-1]) if answer.returncode == 0 else 0

    @unittest.skipUnless(MAY_ATTACH, "attaching is not allowed here")
    def test_what_children_allocate_before_they_are_reached_is_within_the_limits(self):
        command = self.tool("-i", "4096", "--no-report")
        trace = os.path.join(command[command.index("-o") + 1], "raw-trace")
        with Running(["/usr/bin/python3", "-c", EARLY], stdin=subprocess.PIPE) as running, Engine() as engine, subprocess.Popen(
                [*command, "-p", str(running.pid)], env={**self.env, **engine.env}, stderr=subprocess.PIPE, text=True) as tool:
            while "Profiling active" not in (line := tool.stderr.readline()):
                self.assertTrue(line)
            running.process.stdin.write("\n")
            running.process.stdin.flush()
            wait_until(lambda: self.processes_dumped(engine, trace) == 4)
            running.process.stdin.close()
            running.process.stdin = None
            self.assertEqual(running.process.wait(timeout=60), 0)
            errors = tool.communicate(timeout=60)[1]
        rows = json.loads(subprocess.run(
            [HEAP_PROFILE, "query", "--json", trace, """SELECT pid, live_size_high, peak_size_high, exact_alloc_count, from_startup,
             (SELECT value FROM heap_profile_quality q WHERE q.upid = heap_dump.upid AND q.name = 'unsampled_calls'
              ORDER BY q.dump_id DESC LIMIT 1) AS calls,
             (SELECT value FROM heap_profile_quality q WHERE q.upid = heap_dump.upid AND q.name = 'unsampled_bytes'
              ORDER BY q.dump_id DESC LIMIT 1) AS bytes
             FROM heap_dump JOIN process USING (upid) WHERE heap_dump.id IN (SELECT max(id) FROM heap_dump GROUP BY upid)"""],
            check=True, capture_output=True, text=True, timeout=60).stdout)
        children = [row for row in rows if row["pid"] != running.pid]
        self.assertEqual(len(children), 3, errors)
        self.assertGreater(sum(row["calls"] for row in children), 0, children)
        for row in children:
            self.assertGreaterEqual(row["exact_alloc_count"], 601, row)
            self.assertGreaterEqual(row["live_size_high"], 6_010_000, row)
            self.assertGreaterEqual(row["peak_size_high"], 6_010_000, row)
            self.assertEqual(row["from_startup"], 0 if row["calls"] else 1, row)
            self.assertEqual(row["bytes"] > 0, row["calls"] > 0, row)
        self.assertIn("came too early to be sampled, and are counted only: as much more may be live", errors)
        shown = subprocess.run([HEAP_PROFILE, "show", trace], check=True, capture_output=True, text=True, timeout=60).stdout
        self.assertIn(shown[shown.index("Recorded "):], errors)

    @unittest.skipUnless(MAY_ATTACH and os.geteuid() == 0, "attaching is not allowed here")
    def test_children_that_confine_themselves_are_not_killed_for_a_system_call_of_ours(self):
        self.attached([program("confined_children")], "1")

    @unittest.skipUnless(MAY_ATTACH, "attaching is not allowed here")
    def test_one_that_confines_itself_later_is_not_killed_for_waiting(self):
        """For space in a ring that is full at once, and at its end until all has been read."""
        self.attached([program("confined_children"), "300000"], "1", "--shmem-size", "16384")
        with open(self.stats) as file:
            stats = json.load(file)
        self.assertEqual(stats["alloc_calls"], 300000)
        self.assertGreater(stats["samples"], 10)

    def test_of_many_children_none_is_missed(self):
        self.preloaded("fork", "524288", children=6000)  # more than can be there at once
        self.check("fork", 6000 * CALLS)

    def test_the_trace_has_what_the_figures_and_the_summary_have(self):
        for options in [], ["-c", "10"]:
            with self.subTest(options):
                tool = self.tool("-i", "524288", *options)
                self.preloaded("fork", "", tool)
                stats = self.check("fork")
                self.assertGreater(stats["unsampled_children"], 0)
                totals = self.totals_by_sql(tool)
                self.assertEqual(totals, {name: stats[name] for name in totals})

    def test_when_only_children_allocate_it_is_said(self):
        result = self.preloaded("fork", "1000000000")
        self.assertIn("no sample was taken of", result.stderr)

    def test_children_without_a_sample_are_in_the_summary(self):
        stats = None
        for _ in range(20):  # the parent's 7 blocks are nearly always enough for one
            result = self.preloaded("fork", "8192")
            stats = self.check("fork")
            if "Recorded" in result.stderr and stats["unsampled_children"] > 0:
                break
        children = stats["unsampled_children"]
        self.assertIn(f"also {children} forked child", result.stderr)


if __name__ == "__main__":
    unittest.main()
