"""--memory-budget of whatever opens a heap dump of Java: the same answers in little memory.

Beyond the budget what is known of objects is in files; the kernel counts private memory alone (RLIMIT_DATA).
"""

import os
import resource
import shutil
import struct
import subprocess
import tempfile
import unittest

from hprof_dump import Dump, phone
from profile_run import HEAP_PROFILE
from view_test import Server
from with_directory import WithDirectory

PATIENCE = 120  # seconds
OBJECTS = 2_000_000
STEP = 8 << 20
BUDGET = ("--memory-budget", "1M")
SHELL = os.path.join(os.environ["COMPAT"], "trace_processor_shell")
IN_MEMORY = ("tmpfs", "ramfs")
SQL = """
SELECT sum(self_size), sum(retained_size), max(root_distance) FROM heap_graph_object;
SELECT count(*), sum(owner_id), sum(owned_id) FROM heap_graph_reference;
SELECT count(*), sum(int_value) FROM heap_graph_primitive;
INCLUDE PERFETTO MODULE android.memory.heap_graph.dominator_tree;
SELECT count(*), sum(dominated_size_bytes), max(depth) FROM heap_graph_dominator_tree;
"""


def list_of_nodes():
    """Each object holds the next one and has a number."""
    dump = Dump(version="1.0.2").string(2, "next").string(3, "number").load_class(20, "Node")
    nodes = b"".join(struct.pack(">BIIIIII", 0x21, 1000 + 8 * i, 0, 20, 8, 1008 + 8 * i if i + 1 < OBJECTS else 0, i)
                     for i in range(OBJECTS))
    fields = struct.pack(">HIBIB", 2, 2, 2, 3, 10)  # an object, a number
    dump.segment(dump.root(0x05, 20), dump.root(0xFF, 1000), dump.class_dump(20)[:-2] + fields, nodes).end()
    return dump.bytes


def disk_directory():
    """A directory whose files are on a disk and need no names; None: there is none."""
    for directory in ("/var/tmp", tempfile.gettempdir(), os.environ["BUILD_DIRECTORY"]):
        kind = subprocess.run(["stat", "-f", "-c", "%T", directory], capture_output=True, text=True).stdout.strip()
        try:
            os.close(os.open(directory, os.O_TMPFILE | os.O_RDWR))
        except OSError:
            continue
        if kind not in IN_MEMORY:
            return directory
    return None


def limits(**kinds):
    def set_limits():
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for kind, bytes_ in kinds.items():
            resource.setrlimit(getattr(resource, "RLIMIT_" + kind), (bytes_, bytes_))
    return set_limits


class MemoryBudgetTest(WithDirectory):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.disk = disk_directory()
        if cls.disk is None:
            raise unittest.SkipTest("neither /var/tmp, nor the directory of temporary files, nor the build is on a disk with nameless files")
        cls.class_directory = tempfile.mkdtemp(prefix="memory_budget_")
        cls.addClassCleanup(shutil.rmtree, cls.class_directory)
        cls.large, cls.small = (os.path.join(cls.class_directory, name) for name in ("large.hprof", "small.hprof"))
        for path, data in ((cls.large, list_of_nodes()), (cls.small, phone())):
            with open(path, "wb") as file:
                file.write(data)

    def run_in(self, *command, **kinds):
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL,
                              preexec_fn=limits(**kinds), env={**os.environ, "TMPDIR": self.disk})

    def limit_for(self, command):
        """What this takes for a small dump, and a little."""
        return next(limit for limit in range(STEP, 100 * STEP, STEP)
                    if self.run_in(*command(self.small), DATA=limit).returncode == 0) + 4 * STEP

    def check(self, command):
        limit = self.limit_for(command)
        free = self.run_in(*command(self.large))
        self.assertEqual(free.returncode, 0, free.stderr)
        self.assertNotEqual(self.run_in(*command(self.large), DATA=limit).returncode, 0, "the limit is none")
        bounded = self.run_in(*command(self.large), *BUDGET, DATA=limit)
        self.assertEqual(bounded.returncode, 0, bounded.stderr)
        self.assertEqual(bounded.stdout, free.stdout)


class SameAnswers(MemoryBudgetTest):
    def test_hprof(self):
        self.check(lambda dump: [HEAP_PROFILE, "hprof", "dominators", "--json", "--top", "5", dump])

    def test_query(self):
        self.check(lambda dump: [HEAP_PROFILE, "query", "--json", "-Q", SQL, dump])

    def test_trace_processor_shell(self):
        self.check(lambda dump: [SHELL, "-Q", SQL, dump])

    def test_report(self):
        # The page names its files.
        shown = os.path.join(self.directory, "shown.hprof")

        def command(dump):
            shutil.copy(dump, shown)
            return [HEAP_PROFILE, "report", "-q", "-o", "-", shown]
        self.check(command)

    def test_view(self):
        limit = self.limit_for(lambda dump: [HEAP_PROFILE, "view", "--no-open", "--idle", "1ms", dump])
        answers = []
        for options, limited in (((), None), ((), limit), (BUDGET, limit)):
            server = Server(self.large, options=("--no-open", *options), env={**os.environ, "TMPDIR": self.disk},
                            preexec_fn=limits(**({} if limited is None else {"DATA": limited})))
            if server.url == "":
                server.end()
                answers.append(None)
                continue
            answers.append((server.ask()[2], server.sql("SELECT sum(retained_size) FROM heap_graph_object")[1]["rows"]))
            self.assertEqual(server.end()[0], 0)
        free, impossible, bounded = answers
        self.assertIsNone(impossible, "the limit is none")
        self.assertEqual(bounded, free)


class Messages(MemoryBudgetTest):
    def test_without_room_on_the_disk_it_ends_and_says_so(self):
        for command in (["hprof", "dominators"], ["report", "-o", "-"], ["query", "-Q", SQL], ["view", "--no-open"]):
            done = self.run_in(HEAP_PROFILE, *command, *BUDGET, self.large, FSIZE=1 << 20)
            self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
            self.assertRegex(done.stderr, r"^heap_profile: cannot keep to --memory-budget: cannot make a temporary file larger in "
                             + self.disk + r": File too large; free room there, name another directory in TMPDIR, or give more\n$")

    def test_a_directory_in_memory_is_refused(self):
        for command in (["hprof", "dominators"], ["report", "-o", "-"], ["query", "-Q", SQL], ["view", "--no-open"]):
            done = subprocess.run([HEAP_PROFILE, *command, *BUDGET, self.large], capture_output=True, text=True, timeout=PATIENCE,
                                  env={**os.environ, "TMPDIR": "/dev/shm"})
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertIn("cannot keep to a memory budget: files in /dev/shm are in memory themselves", done.stderr)


if __name__ == "__main__":
    unittest.main()
