"""SQL over what real programs left: the tables must tell the same truth as the programs themselves."""

import contextlib
import json
import os
import pathlib
import pty
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from profile_run import HEAP_PROFILE, program

SEED_QUERY = """
select a.callsite_id, a.ts, a.upid, f.name, f.rel_pc, m.build_id, m.name as mapping_name,
sum(a.size) as space_size, sum(a.count) as space_count
from heap_profile_allocation a join
stack_profile_callsite c ON (a.callsite_id = c.id) join
stack_profile_frame f ON (c.frame_id = f.id) join
stack_profile_mapping m ON (f.mapping = m.id)
group by 1, 2, 3, 4, 5, 6, 7 order by space_size desc;
"""
ENDLESS = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"


class Query(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(tempfile.mkdtemp(prefix="query_test_"))
        profile = cls.directory / "profile"
        done = subprocess.run([HEAP_PROFILE, "-q", "-i", "1", "-o", profile, "--", program("known_stacks")],
                              capture_output=True, text=True, check=True)
        cls.truth = json.loads(done.stdout)
        cls.trace = profile / "raw-trace"
        cls.pprof = next(profile.glob("heap_dump.1.*"))
        cls.shell = cls.directory / "trace_processor_shell"
        cls.shell.symlink_to(HEAP_PROFILE)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.directory)

    def query(self, sql, *files):
        done = subprocess.run([HEAP_PROFILE, "query", "--json", *(files or [self.trace]), sql],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_threads_have_totals(self):
        profile = self.directory / "threads"
        subprocess.run([HEAP_PROFILE, "-q", "-i", "1", "-o", profile, "--", program("threads")],
                       capture_output=True, check=True)
        trace = profile / "raw-trace"
        rows = self.query("select thread_name, thread.is_main_thread as is_main, alloc_count, alloc_size, live_size "
                          "from heap_profile_thread join thread using (utid)", trace)
        workers = [row for row in rows if not row["is_main"]]
        self.assertEqual(len(workers), 64)
        # Threads that were gone before anybody could ask have no name.
        self.assertLessEqual({row["thread_name"] for row in workers}, {"handing_over", "threads", None})
        for row in workers:
            self.assertGreaterEqual(row["alloc_count"], 500)
            self.assertGreaterEqual(row["alloc_size"], 500 * 300)
            self.assertLess(row["live_size"], 300)  # whoever freed the blocks
        heap = self.query("select alloc_count, alloc_size, live_size from heap_dump", trace)[0]
        self.assertEqual({key: sum(row[key] for row in rows) for key in heap}, heap)

    def assert_truth(self, file):
        rows = {row["name"]: row for row in self.query(
            "select name, sum(count) as count, sum(size) as size, sum(alloc_count) as alloc_count, "
            "sum(alloc_size) as alloc_size from experimental_flamegraph('native', "
            "(select max(ts) from heap_dump), null, (select upid from heap_dump limit 1), null, null) "
            "group by 1", file)}
        for function, values in self.truth.items():
            row = rows[function]
            self.assertEqual([row["alloc_count"], row["alloc_size"], row["count"], row["size"]], values, function)

    def test_a_trace_tells_the_truth(self):
        self.assert_truth(self.trace)

    def test_its_pprof_file_tells_the_same(self):
        rows = {row["name"]: row["self"] for row in self.query("select name, self from top('space')", self.pprof)}
        for function, values in self.truth.items():
            self.assertEqual(rows[function], values[3], function)

    def test_its_folded_stacks_tell_the_same(self):
        stacks = self.query("select name, size from experimental_flamegraph('native', null, null, 1, null, null) "
                            "where size != 0")
        folded = self.directory / "stacks.folded"
        folded.write_text("".join(f"main;{row['name']} {row['size']}\n" for row in stacks))
        rows = {row["name"]: row["self"] for row in self.query("select name, self from top()", folded)}
        self.assertEqual(rows["leaks_huge"], self.truth["leaks_huge"][3])

    @unittest.skipUnless(shutil.which("heaptrack"), "heaptrack is not installed")
    def test_a_recording_of_heaptrack_tells_the_same(self):
        subprocess.run(["heaptrack", "-o", self.directory / "recording", program("known_stacks")],
                       capture_output=True, check=True)
        file = next(self.directory.glob("recording*"))
        rows = {row["name"]: row for row in self.query(
            "select t.name, t.self as live, a.self as total from top('space') t join top('alloc_space') a "
            "using (name, mapping_name)", file)}
        for function, values in self.truth.items():
            self.assertEqual((rows[function]["live"], rows[function]["total"]), (values[3], values[1]), function)

    def test_the_seed_query_has_the_documented_columns(self):
        rows = self.query(SEED_QUERY)
        self.assertEqual(list(rows[0]), ["callsite_id", "ts", "upid", "name", "rel_pc", "build_id", "mapping_name",
                                         "space_size", "space_count"])
        sizes = [row["space_size"] for row in rows]
        self.assertEqual(sizes, sorted(sizes, reverse=True))
        self.assertEqual(rows[0]["mapping_name"], program("known_stacks"))

    def test_two_files_are_queried_together(self):
        rows = self.query("select count(distinct upid) as n, count(*) as dumps from heap_dump", self.trace, self.pprof)
        self.assertEqual(rows, [{"n": 2, "dumps": 2}])

    def test_the_compatible_name_answers_in_csv(self):
        script = self.directory / "q.sql"
        script.write_text("select 1 as one;\nselect 'a\"b' as text, null as none;\n")
        for arguments in (["-q", script, self.trace],
                          ["-Q", script.read_text(), self.trace],
                          [f"--query-file={script}", self.trace]):
            done = subprocess.run([self.shell, *arguments], capture_output=True, text=True, check=True)
            self.assertEqual(done.stdout, '"one"\n1\n"text","none"\n"a""b","[NULL]"\n')

    def test_queries_come_from_standard_input(self):
        done = subprocess.run([HEAP_PROFILE, "query", "--csv", self.trace], input="select 7 as n;",
                              capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, '"n"\n7\n')

    def test_errors_have_exit_codes_and_say_what_to_do(self):
        for arguments, code, text in (
                (["query", self.trace, "select nothing_such"], 1, "no such column"),
                (["query", "/nonexistent", "select 1"], 1, "No such file"),
                (["query", "/bin/true", "select 1"], 1, "its format is not known"),
                (["query", "--frobnicate", self.trace], 2, "--help lists all options"),
                (["query"], 2, "no trace is named")):
            done = subprocess.run([HEAP_PROFILE, *arguments], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(text, done.stderr)
            self.assertEqual(done.stdout, "")

    def test_an_endless_query_ends_with_ctrl_c(self):
        process = subprocess.Popen([HEAP_PROFILE, "query", self.trace, "select 1 as started; " + ENDLESS],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 30
        while "SigCgt" not in (status := pathlib.Path(f"/proc/{process.pid}/status").read_text()) or \
                int(status.split("SigCgt:")[1].split()[0], 16) & (1 << (signal.SIGINT - 1)) == 0:
            self.assertLess(time.monotonic(), deadline)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130)
        self.assertIn("it was cancelled", stderr)

    def test_one_long_step_of_sqlite_ends_with_the_first_ctrl_c(self):
        # A pattern that is tried at every place of a long text: one operation, in which SQLite asks nobody.
        step = "select 1; select glob('" + "*a" * 300 + "b', printf('%.*c', 30000000, 'a'))"
        process = subprocess.Popen([HEAP_PROFILE, "query", self.trace, step], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 30
        while "SigCgt" not in (status := pathlib.Path(f"/proc/{process.pid}/status").read_text()) or \
                int(status.split("SigCgt:")[1].split()[0], 16) & (1 << (signal.SIGINT - 1)) == 0:
            self.assertLess(time.monotonic(), deadline)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=10)
        self.assertEqual(process.returncode, 130, stderr)

    def test_no_value_is_longer_than_any_trace_needs(self):
        done = subprocess.run([HEAP_PROFILE, "query", self.trace, "select length(printf('%.*c', 1000000000, 'x'))"],
                              capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("[NULL]", done.stdout)  # printf's way to say that its result would be too long

    def test_names_do_not_steer_the_terminal(self):
        for form in ([], ["--csv"], ["--json"]):
            parent, child = pty.openpty()
            process = subprocess.Popen([HEAP_PROFILE, "query", *form, self.trace,
                                        "select char(27) || ']0;owned' || char(8238, 155) as name"],
                                       stdin=subprocess.DEVNULL, stdout=child, stderr=child, close_fds=True)
            os.close(child)
            output = b""
            with contextlib.suppress(OSError):  # the other end is closed
                while data := os.read(parent, 4096):
                    output += data
            os.close(parent)
            self.assertEqual(process.wait(), 0, output)
            self.assertIn(b"]0;owned", output)
            for steering in (b"\x1b", "\u202e".encode(), "\x9b".encode()):
                self.assertNotIn(steering, output)

    def test_the_shell_works_on_a_terminal(self):
        parent, child = pty.openpty()
        process = subprocess.Popen([HEAP_PROFILE, "query", self.trace], stdin=child, stdout=child, stderr=child,
                                   env={**os.environ, "HOME": str(self.directory), "TERM": "dumb"}, close_fds=True)
        os.close(child)
        os.write(parent, b".schema heap_profile\nselect count(*) * 0 + 4700\n+ 11 as n from process;\n.quit\n")
        output = b""
        while True:
            try:
                data = os.read(parent, 4096)
            except OSError:  # the terminal is gone with the process
                break
            if not data:
                break
            output += data
        os.close(parent)
        self.assertEqual(process.wait(timeout=30), 0)
        self.assertIn(b"ts_end", output)
        self.assertIn(b"4711", output)
        self.assertIn("schema", (self.directory / ".heap_profile_history").read_text())


if __name__ == "__main__":
    unittest.main()
