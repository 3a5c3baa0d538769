"""SQL over what real programs left: the tables must tell the same truth as the programs themselves."""

import contextlib
import glob
import json
import os
import pathlib
import pty
import re
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
JEMALLOC = next(iter(glob.glob("/usr/lib/*/libjemalloc.so.2")), None)
DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
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

    def test_the_documentations_examples_name_what_they_show(self):
        with open(DOCS / "sql.md") as file:
            examples = re.findall(r"`(SELECT [^`]*\sFROM\s[^`]*)`", file.read())
        self.assertGreater(len(examples), 7)
        lives = self.directory / "lives"
        subprocess.run([HEAP_PROFILE, "-q", "-i", "1", "-o", lives, "--", program("known_lives")], capture_output=True, check=True)
        named = set()
        for trace in (self.trace, lives / "raw-trace"):
            tid = self.query("SELECT tid FROM thread WHERE tid > 0", trace)[0]["tid"]
            for example in examples:
                with self.subTest(example):
                    rows = self.query(example.replace("4711", str(tid)), trace)
                    names = {row["function"] for row in rows if "function" in row}
                    self.assertFalse(names & {None, ""})
                    named |= {(kind, name) for name in names for kind in ("temporary", "live_size") if f"kind = '{kind}'" in example}
        self.assertLessEqual({"temporary", "live_size"}, {kind for kind, _ in named})
        self.assertLessEqual({("live_size", "leaks_huge")}, named)

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
            "select name, sum(cumulative_count) as count, sum(cumulative_size) as size, "
            "sum(cumulative_alloc_count) as alloc_count, sum(cumulative_alloc_size) as alloc_size "
            "from experimental_flamegraph('native', "
            "(select max(ts) from heap_dump), null, (select upid from heap_dump limit 1), null, null) "
            "group by 1", file)}
        for function, values in self.truth.items():
            row = rows[function]
            self.assertEqual([row["alloc_count"], row["alloc_size"], row["count"], row["size"]], values, function)

    def test_a_trace_tells_the_truth(self):
        self.assert_truth(self.trace)

    def record(self, name, *options, env=None):
        profile = self.directory / (name + "_" + str(len(list(self.directory.iterdir()))))
        done = subprocess.run([HEAP_PROFILE, "-q", "-i", "1", *options, "-o", profile, "--", program(name)],
                              capture_output=True, text=True, check=True, env={**os.environ, **(env or {})})
        return done.stdout, profile / "raw-trace"

    def test_the_called_function_is_the_leaf_of_each_stack_and_its_caller_is_shown(self):
        stdout, trace = self.record("allocation_functions")
        truth = json.loads(stdout)
        leaves = {(row["caller"], row["name"]): row["size"] for row in self.query(
            "select caller.name as caller, a.name, sum(size) as size from heap_profile_allocation "
            "join heap_profile_allocator a using (callsite_id) join stack_profile_callsite c on c.id = callsite_id "
            "join stack_profile_callsite p on p.id = c.parent_id join stack_profile_frame caller "
            "on caller.id = p.frame_id group by 1, 2", trace)}
        for function, size in truth.items():
            called = function.removeprefix("by_")
            called = {"inlined": "malloc", "new": "_Znwm", "new_array": "_Znam",
                      "new_nothrow": "_ZnwmRKSt9nothrow_t"}.get(called, called)
            self.assertEqual(leaves.get((function, called)), size, leaves)
        # Perfetto counts a stack once for each function of its leaf.
        self.assertEqual(self.query(
            "select count(*) as n from heap_profile_allocation join stack_profile_callsite c on c.id = callsite_id "
            "join stack_profile_frame f on f.id = c.frame_id join stack_profile_symbol using (symbol_set_id)", trace),
            [{"n": 0}])
        pprof = next(trace.parent.glob("heap_dump.1.*"))
        for file in (trace, pprof):
            top = {row["name"]: row["self"] for row in self.query("select name, self from top('space')", file)}
            for function, size in truth.items():
                inlined = {"by_inlined": "Inlined", "by_posix_memalign": "PosixMemalign"}
                self.assertEqual(top.get(inlined.get(function, function)), size, top)
            self.assertNotIn("malloc", top)
            self.assertNotIn("operator new(unsigned long)", top)
        self.assertIn("main", {row["name"] for row in self.query("select name from callers('by_calloc')", trace)})
        self.assertIn("by_calloc", {row["name"] for row in self.query("select name from callers('calloc')", trace)})

    @unittest.skipIf(os.environ.get("SANITIZE"), "a sanitized tool cannot run over another allocator")
    @unittest.skipUnless(JEMALLOC, "jemalloc is not installed")
    def test_operators_of_an_allocator_are_leaves_themselves(self):
        stdout, trace = self.record("allocation_functions", env={"LD_PRELOAD": JEMALLOC})
        names = {row["name"] for row in self.query("select demangle(name) as name from heap_profile_allocator", trace)}
        self.assertLessEqual({"operator new(unsigned long)", "operator new[](unsigned long)",
                              "operator new(unsigned long, std::nothrow_t const&)"}, names)

    def test_dumps_of_several_heaps_have_times_of_their_own_and_intervals_that_chain(self):
        for options in (["--all-heaps", "-c", "20"], ["--all-heaps", "-c", "20", "--dump-at-max"]):
            _, trace = self.record("custom_heaps", *options)
            rows = self.query("select ts, ts_end, dur, upid, heap_name from heap_profile order by upid, heap_name, id",
                              trace)
            self.assertEqual(len({(row["upid"], row["ts_end"]) for row in rows}), len(rows))
            self.assertEqual({row["heap_name"] for row in rows},
                             {"libc.malloc", "com.example.blocks", "com.example.slots"})
            self.assertGreaterEqual(min(row["dur"] for row in rows), 0)
            for before, after in zip(rows, rows[1:]):
                if before["heap_name"] == after["heap_name"]:
                    self.assertEqual(after["ts"], before["ts_end"])
            # Perfetto finds an allocation's heap by process and time alone.
            self.assertEqual(*(self.query(f"select {sum} as n from heap_profile_allocation {join}", trace)
                               for sum, join in (("count(*)", ""),
                                                 ("count(*)", "a join heap_profile p on p.upid = a.upid and p.ts_end = a.ts"))))

    def test_all_exports_round_alike(self):
        profile = self.directory / "rounding"
        subprocess.run([HEAP_PROFILE, "-q", "-i", "700", "-o", profile, "--", program("known_stacks"), "5"],
                       capture_output=True, check=True)
        pprof = next(profile.glob("heap_dump.1.*"))
        for view in ("space", "objects", "alloc_space", "alloc_objects"):
            self.assertEqual(*(self.query(f"select name, self from top('{view}') where self != 0 order by 1, 2", file)
                               for file in (profile / "raw-trace", pprof)), view)

    def test_symbols_are_demangled_and_frames_are_not(self):
        _, trace = self.record("cpp_new")
        names = [row["name"] for row in self.query("select name from stack_profile_symbol", trace)]
        self.assertEqual([name for name in names if name.startswith("_Z")], [])
        frames = [row["name"] for row in self.query(
            "select distinct f.name from stack_profile_frame f join stack_profile_symbol s using (symbol_set_id) "
            "where s.name like 'operator new(%'", trace)]
        for name in frames:
            self.assertTrue(name.startswith("_Znw"), name)

    def test_its_pprof_file_tells_the_same(self):
        rows = {row["name"]: row["self"] for row in self.query("select name, self from top('space')", self.pprof)}
        for function, values in self.truth.items():
            self.assertEqual(rows[function], values[3], function)

    def test_its_folded_stacks_tell_the_same(self):
        stacks = self.query("select name, self as size from flamegraph(0, 'space') where self != 0")
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
        self.assertEqual(rows[0]["name"], "malloc")

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

    def test_reals_keep_all_of_their_digits(self):
        sql = "SELECT 1e-9 AS a, 1.0/30000000 AS b, 3.0 AS c, -1e300 AS d, 0.1 AS e, 9e999 AS f"
        texts = ["1e-09", "3.3333333333333334e-08", "3.0", "-1e+300", "0.1"]
        printed = {form: subprocess.run([HEAP_PROFILE, "query", form, self.trace, sql], capture_output=True, text=True, check=True).stdout
                   for form in ("--json", "--csv", "--table")}
        self.assertEqual(printed["--csv"].splitlines()[1].split(","), [*texts, "inf"])
        self.assertEqual(printed["--table"].splitlines()[2].split(), [*texts, "inf"])
        self.assertEqual(json.loads(printed["--json"]), [{"a": 1e-9, "b": 1 / 30000000, "c": 3.0, "d": -1e300, "e": 0.1, "f": None}])
        done = subprocess.run([self.shell, "-Q", "SELECT 1.0/3, 3.0", self.trace], capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout.splitlines()[1], "0.333333,3.000000")

    def test_a_query_may_begin_with_a_comment(self):
        for sql in ("-- one\nSELECT 7 AS n", "--one\nSELECT 7 AS n"):
            self.assertEqual(self.query(sql), [{"n": 7}])

    def test_dumps_that_are_not_there_are_counted(self):
        done = subprocess.run([HEAP_PROFILE, "query", self.trace, "SELECT * FROM flamegraph(77)"], capture_output=True, text=True, check=False)
        self.assertIn("cannot find dump 77: the trace has 1 dump; SELECT id, ts, upid, heap_name FROM heap_dump lists them", done.stderr)

    def test_queries_come_from_standard_input(self):
        done = subprocess.run([HEAP_PROFILE, "query", "--csv", self.trace], input="select 7 as n;",
                              capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, '"n"\n7\n')

    def test_errors_have_exit_codes_and_say_what_to_do(self):
        for arguments, code, text in (
                (["query", self.trace, "select nothing_such"], 1, "no such column"),
                (["query", "/nonexistent", "select 1"], 1, "No such file"),
                (["query", "/bin/true", "select 1"], 1, "it is a program or a library"),
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
