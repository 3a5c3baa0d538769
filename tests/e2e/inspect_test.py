"""show, stats, diff, leaks and export: what they say of a file is what the recording, SQL and the report say."""

import csv
import gzip
import io
import json
import os
import re
import subprocess
import tempfile
import unittest

import pprof_pb2
import trace_pb2
from google.protobuf import text_format
from profile_run import HEAP_PROFILE, program
from terminal_test import at_terminal

PYTHON = "/usr/bin/python3"
MIB = 1 << 20
TRACES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "traces")


def tool(*arguments, **kwargs):
    return subprocess.run([HEAP_PROFILE, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120,
                          **kwargs)


def script(blocks, size=100_000, marks=False):
    """Keeps `blocks` blocks of malloc's; with `marks` a dump behind each tenth."""
    mark = f"import subprocess\ndef mark(i): subprocess.run([{HEAP_PROFILE!r}, 'mark', f'step{{i}}'], check=True)\n"
    return ("import ctypes\nlibc = ctypes.CDLL(None)\nlibc.malloc.restype = ctypes.c_void_p\n" + (mark if marks else "") +
            f"for i in range({blocks}):\n libc.malloc({size}); libc.free(ctypes.c_void_p(libc.malloc(50_000)))\n" +
            (" if i % 10 == 9: mark(i)\n" if marks else ""))


class InspectTest(unittest.TestCase):
    said = {}  # by recording

    @classmethod
    def setUpClass(cls):
        if InspectTest.said:  # what was recorded once serves all
            return
        holder = tempfile.TemporaryDirectory()
        unittest.addModuleCleanup(holder.cleanup)
        InspectTest.directory = holder.name
        for name, options, command in [
                ("small", ["--top", "3"], [PYTHON, "-c", script(50)]), ("large", [], [PYTHON, "-c", script(100)]),
                ("again", [], [PYTHON, "-c", script(100)]), ("exact", ["-i", "1"], [program("known_stacks")]),
                ("growing", ["--no-children", "--top", "2"], [PYTHON, "-c", script(60, marks=True)]),
                ("maximum", ["--dump-at-max"], [PYTHON, "-c", script(50)]),
                ("shell", [], ["/bin/bash", "-c", "x=$(seq 20000); /bin/sh -c 'ls /usr/bin | sort | tail -1'; : $x"])]:
            result = tool("--no-report", *options, "-o", cls.path(name), "--", *command)
            assert result.returncode == 0, result.stderr
            cls.said[name] = result.stderr

    @classmethod
    def path(cls, name, file=""):
        return os.path.join(cls.directory, name, file).rstrip("/")

    def trace(self, name):
        return self.path(name, "raw-trace")

    def file(self, name, content):
        with open(self.path(name), "w") as file:
            file.write(content)
        return self.path(name)

    def run_tool(self, *arguments, code=0):
        result = tool(*arguments)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result

    def query(self, path, sql):
        return json.loads(self.run_tool("query", "--json", path, sql).stdout)

    def pprof(self, name):
        """Of the first process of a recording, which the summary names."""
        path = re.search(r"  pprof  (\S+)", self.said[name])[1]
        with gzip.open(path) as file:
            profile = pprof_pb2.Profile()
            profile.ParseFromString(file.read())
        return path, profile


class Show(InspectTest):
    def check_is_summary(self, name, said, top="10"):
        """Byte for byte, but for the files that the recording lists."""
        self.assertIn("\nRecorded ", said)
        summary = said[said.index("\nRecorded ") + 1:said.index("\n  trace ")]
        self.assertEqual(self.run_tool("show", "--top", top, self.trace(name)).stdout, summary)

    def test_it_is_the_recordings_summary(self):
        for name, top in (("small", "3"), ("large", "10"), ("again", "10"), ("growing", "2"), ("exact", "10"), ("shell", "10")):
            with self.subTest(name):
                self.check_is_summary(name, self.said[name], top)

    def test_the_length_of_a_recording_is_one_truth(self):
        result = tool("--no-report", "--dump-at-max", "-c", "20", "-o", self.path("length"), "--", PYTHON, "-c",
                      "kept = [bytes(5000) for _ in range(2000)]; import time; end = time.monotonic() + 0.5\n"
                      "while time.monotonic() < end: pass")
        said = re.search(r"Recorded (\d+ ms|\d\.\d s) of ", result.stderr)[1]
        self.assertIn(f", {said}\n", self.run_tool("stats", self.trace("length")).stdout)
        self.assertIn(f"Recorded {said} of ", self.run_tool("show", self.trace("length")).stdout)
        self.assertGreaterEqual(json.loads(self.run_tool("stats", "--json", self.trace("length")).stdout)["seconds"], 0.5)

    def test_so_it_is_of_what_went_wrong_or_is_odd(self):
        several = f"{PYTHON} -c 'import json' & {PYTHON} -c 'import re, email.message' & wait"
        # Any of the many that allocate 192 bytes may be sampled, but not all of them.
        forked = ("import os\nfor i in range(20):\n if os.fork() == 0:\n  b = [bytes(9999) for i in range(300 * (i // 18))]\n"
                  "  os._exit(0)\n os.wait()")
        for name, options, command, said in [
                ("unrecorded", [], ["/bin/sh", "-c", f"env -i /bin/echo a; env -i /bin/true; {PYTHON} -c 1"],
                 "! 2 programs were not recorded"),
                ("static", ["-i", "1"], [program("starter"), program("static_hello"), "a"], "statically linked"),
                ("lost", ["-i", "1", "--shmem-size", "16384", "--no-block-client"], [program("known_stacks"), "30"],
                 "(incomplete)"),
                ("several", ["-i", "100"], ["/bin/sh", "-c", several], "  also python3"),
                ("forked", [], [PYTHON, "-c", forked], "forked child"),
                ("exec", [], ["/bin/sh", "-c", f"exec {PYTHON} -c 'import email.message'"], "Recorded"),
                ("heaps", ["-i", "1", "--all-heaps"], [program("custom_heaps")], "heap com.example.blocks"),
                ("unwanted", ["-i", "1"], [program("custom_heaps")], "add --all-heaps"),
                ("absent", ["--heaps", "libc.malloc=1,absent"], [program("custom_heaps")], "no heap named absent"),
                ("requested", ["-i", "1", "--all-heaps"], [program("annotated")], "heap com.example.pool"),
                ("allocator", ["--malloc-info"], [PYTHON, "-c", script(50)], "Memory of the process"),
                ("unnamed", ["-i", "1"], [PYTHON, "-c", "import sqlite3; sqlite3.connect(':memory:').execute('select 1')"],
                 "without a name")]:
            with self.subTest(name):
                result = tool("--no-report", *options, "-o", self.path(name), "--", *command)
                self.assertIn(said, result.stderr)
                self.check_is_summary(name, result.stderr)

    def test_processes_are_all_there(self):
        shown = self.run_tool("show", self.trace("shell")).stdout
        for name in ("bash", "sort"):
            self.assertIn(name, shown)

    def test_any_width(self):
        for width in ("40", "80", "200"):
            shown = self.run_tool("show", "--width", width, self.trace("small")).stdout
            self.assertTrue(all(len(line) <= max(72, int(width)) for line in shown.splitlines()), shown)

    def test_colours_are_for_terminals_that_want_them(self):
        self.assertIn("\033[1m", at_terminal(80, "show", self.trace("small"), env=["-u", "NO_COLOR"]))
        self.assertNotIn("\033[1m", at_terminal(80, "show", self.trace("small"), env=["NO_COLOR=1"]))
        self.assertNotIn("\033[", self.run_tool("show", self.trace("small")).stdout)

    def test_of_a_maximum_what_was_live_then_is_shown(self):
        self.check_is_summary("maximum", self.said["maximum"])
        shown = self.run_tool("show", self.trace("maximum")).stdout
        self.assertIn("Top live memory at peak", shown)
        self.assertNotRegex(shown, r"live at end .* to ")

    def test_a_peak_far_above_the_end_comes_first(self):
        directory = self.path("peak")
        said = tool("-i", "1", "--no-report", "-o", directory, "--", PYTHON, "-c", "b = bytearray(1 << 22); del b").stderr
        shown = self.run_tool("show", directory + "/raw-trace").stdout
        for text in (said, shown):
            self.assertRegex(text, r"(?s)Top live memory at peak.*4\.00 MiB.*Top live memory at end")
            self.assertNotIn("4.00 MiB", text[text.index("Top live memory at end"):])

    def test_a_recording_whose_trace_is_replaced_tells_of_its_own(self):
        other = self.trace("small")
        for i, change in enumerate(("rm raw-trace", f"cp {other} new; mv new raw-trace", "rm raw-trace; mkfifo raw-trace")):
            with self.subTest(change):
                directory = self.path(f"gone{i}")
                result = tool("-i", "1", "--no-report", "-o", directory, "--", "/bin/sh", "-c",
                              f"cd {directory}; {change}; exec {program('known_stacks')}")
                self.assertIn("known_stacks", result.stderr)
                self.assertIn("Top live memory", result.stderr)
                self.assertTrue([name for name in os.listdir(directory) if name.endswith(".pb.gz")], result.stderr)

    def test_what_could_not_be_made_of_a_trace_is_named_with_the_way_to_make_it(self):
        directory = self.path("taken")
        result = tool("-i", "1", "--no-report", "-o", directory, "--", "/bin/sh", "-c",
                      f"for i in 1 2 3 4 5; do mkdir {directory}/heap_dump.$i.$$.libc.malloc.pb.gz; done; exec {program('known_stacks')}")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("Top live memory", result.stderr)
        self.assertRegex(result.stderr, "heap_profile: cannot make the pprof files: cannot create .*: Is a directory; "
                                        f"try heap_profile traceconv profile {directory}/raw-trace")

    def test_other_files_and_several(self):
        folded = self.file("some.folded", "main;load 4096\nmain;parse 8192\n")
        shown = self.run_tool("show", folded, self.pprof("small")[0]).stdout
        self.assertIn("Profile of some.folded, heap folded\n", shown)
        self.assertEqual(shown.count("\n  allocated    unknown\n"), 1, "folded stacks tell what is live")
        self.assertIn("live at end  12.0 KiB\n", shown)
        self.assertIn(" 1  parse", shown)
        self.assertIn("heap pprof", shown)


class Nothing(InspectTest):
    def test_perfettos_dumps_of_the_maximum_do_not_tell_what_is_left(self):
        path = self.path("theirs")
        with open(os.path.join(TRACES, "dump_at_max.textproto")) as text, open(path, "wb") as file:
            file.write(text_format.Parse(text.read(), trace_pb2.Trace()).SerializeToString())
        self.assertIn("its dumps are of the maximum", self.run_tool("leaks", path, code=4).stderr)
        self.assertRegex(self.run_tool("show", path).stdout, "live at end  unknown")

    def test_nothing_to_tell_is_4_and_said(self):
        empty = self.file("empty.folded", "main;f 0\n")
        for arguments in (["show", empty], ["stats", empty], ["stats", "--fail-if", "peak>1", empty], ["leaks", empty],
                          ["diff", empty, self.trace("small")], ["diff", self.trace("small"), empty],
                          ["export", "--format", "folded", empty]):
            with self.subTest(arguments):
                result = self.run_tool(*arguments, code=4)
                self.assertRegex(result.stderr, r"^heap_profile \w+: nothing to \w+( at)? (of|in) \S+: ")
                self.assertEqual(result.stdout, "")

    def test_wrong_command_lines(self):
        trace = self.trace("small")
        for arguments, words in [
                (["show"], "cannot show: no file is named"), (["stats"], "one file is needed"),
                (["stats", trace, trace], "one file is needed"), (["diff", trace], "two files are needed"),
                (["leaks"], "one file is needed"), (["export", trace], "a format and one file are needed"),
                (["export", "--format", "foldet", trace], "there is no such format; did you mean folded?"),
                (["export", "--format", "csv", "--view", "bytes", trace], "use space, objects, alloc_space or alloc_objects"),
                (["stats", "--fail-if", "peak", trace], "it has neither > nor <"),
                (["stats", "--fail-if", "rss>1", trace], "the figures are live, peak, allocated, calls"),
                (["stats", "--fail-if", "peak>+5%", trace], "what follows is no size or number"),
                (["diff", "--fail-if", "live>x", trace, trace], "no size, number or percentage"),
                (["show", "--width", "wide", trace], "a number of columns from 0 to 10000"),
                (["shw", trace], "did you mean show?")]:
            with self.subTest(arguments):
                result = self.run_tool(*arguments, code=2)
                self.assertIn(words, result.stderr)
                self.assertEqual(len(result.stderr.splitlines()), 1)

    def test_what_a_file_does_not_tell_is_no_gate(self):
        folded = self.file("untold.folded", "main;load 4096\n")
        self.assertIn("does not tell peak", self.run_tool("stats", "--fail-if", "peak>1", folded, code=2).stderr)

    def test_heap_dumps_of_java_are_for_others(self):
        dump = self.file("dump.hprof", "JAVA PROFILE 1.0.2\0")
        self.assertIn("heap_profile hprof leaks", self.run_tool("show", dump, code=2).stderr)

    def test_files_that_cannot_be_read(self):
        self.assertIn("/nonexistent", self.run_tool("show", "/nonexistent", code=1).stderr)
        result = self.run_tool("export", "--format", "csv", "--heap", "mine", self.trace("small"), code=1)
        self.assertIn("it has no heap named mine", result.stderr)
        result = self.run_tool("export", "--format", "csv", "--pid", "1", self.trace("small"), code=1)
        self.assertIn("it has no profile of process 1; heap_profile stats --json lists those it has", result.stderr)


class Stats(InspectTest):
    def test_figures_are_those_of_sql(self):
        stats = json.loads(self.run_tool("stats", "--json", self.trace("small")).stdout)
        self.assertEqual(stats["version"], 1)
        (heap,) = stats["processes"][0]["heaps"]
        (row,) = self.query(self.trace("small"), "select * from heap_dump")
        for key, column in [("live_bytes", "live_size"), ("live_bytes_low", "live_size_low"), ("live_bytes_high", "live_size_high"),
                            ("peak_bytes", "peak_size"), ("peak_bytes_low", "peak_size_low"), ("peak_bytes_high", "peak_size_high"),
                            ("alloc_bytes", "exact_alloc_size"), ("alloc_calls", "exact_alloc_count")]:
            self.assertAlmostEqual(heap[key], row[column], delta=2, msg=key)
            self.assertEqual(stats[key], heap[key])
        for name, value in stats["processes"][0]["quality"].items():
            self.assertEqual([{"value": value}], self.query(
                self.trace("small"), f"select value from heap_profile_quality where name = '{name}'"), name)

    def test_gates(self):
        """About 50 blocks of 100 kB are live, by every allocation of that size."""
        for condition, code, words in [("peak>300MiB", 0, ""), ("live>1MiB", 5, "live>1MiB has come true"),
                                       ("calls<10", 0, ""), ("allocated<1GiB", 5, "allocated<1GiB has come true")]:
            with self.subTest(condition):
                result = self.run_tool("stats", "--fail-if", condition, self.trace("small"), code=code)
                self.assertIn(words, result.stderr)
        stats = json.loads(self.run_tool("stats", "--json", self.trace("small")).stdout)
        self.assertLess(stats["peak_bytes_low"], stats["peak_bytes"])
        between = (stats["peak_bytes_low"] + stats["peak_bytes"]) // 2
        result = self.run_tool("stats", "--json", "--fail-if", f"peak>{between}", self.trace("small"))
        self.assertIn("is within the sampling error (95 %): not failed", result.stderr)
        self.assertEqual(json.loads(result.stdout)["thresholds"],
                         [{"text": f"peak>{between}", "verdict": "within the sampling error", "failed": False,
                           "error_is_known": True, "is_incomplete": False}])

    def test_a_recording_of_all_allocations_has_no_error(self):
        stats = json.loads(self.run_tool("stats", "--json", self.trace("exact")).stdout)
        self.assertEqual(stats["live_bytes_low"], stats["live_bytes_high"])


class Diff(InspectTest):
    def test_what_changed_is_found_and_gated(self):
        result = self.run_tool("diff", self.trace("small"), self.trace("large"), "--fail-if", "live>+5%", code=5)
        self.assertIn("live>+5% has come true", result.stderr)
        self.assertRegex(result.stdout, r"live at end  B - A = \S* ?\+4\.\d+ MiB \(\d+% of A\): from \S+ MiB to \S+ MiB")
        self.assertRegex(result.stdout, r"   1  \[libffi\S*\] +\S* ?\+4\.\d\d MiB")
        self.run_tool("diff", self.trace("small"), self.trace("large"), "--fail-if", "live>+1GiB")
        self.run_tool("diff", self.trace("large"), self.trace("small"), "--fail-if", "live>+5%")

    def test_noise_is_called_that_and_does_not_fail(self):
        result = self.run_tool("diff", "--json", self.trace("large"), self.trace("again"), "--fail-if", "live>+5%")
        diff = json.loads(result.stdout)
        self.assertTrue(diff["error_is_known"])
        live = diff["live_bytes"]
        self.assertEqual(live["change"], live["b"] - live["a"])
        self.assertEqual(live["is_noise"], live["change"] != 0 and live["change_low"] <= 0 <= live["change_high"])
        self.assertTrue(all(row["is_noise"] == (abs(row["change"]) <= row["error"]) for row in diff["functions"]
                            if abs(abs(row["change"]) - row["error"]) > 1))

    def test_noise_is_explained_where_it_is_shown(self):
        files = self.trace("small"), self.trace("large")
        rows = json.loads(self.run_tool("diff", "--json", *files).stdout)["functions"]
        self.assertFalse(rows[0]["is_noise"])
        for top in (1, len(rows)):
            shown = self.run_tool("diff", "--top", str(top), *files).stdout
            self.assertEqual("noise: the change is within" in shown, any(row["is_noise"] for row in rows[:top]), shown)

    def test_functions_add_up_to_what_sql_has(self):
        diff = json.loads(self.run_tool("diff", "--json", self.trace("small"), self.trace("large")).stdout)
        totals = [self.query(self.trace(name), "select sum(size) as live from heap_profile_allocation")[0]["live"] for name in ("small", "large")]
        self.assertAlmostEqual(sum(row["change"] for row in diff["functions"]), totals[1] - totals[0],
                               delta=len(diff["functions"]))

    def test_the_same_is_the_same(self):
        result = self.run_tool("diff", self.trace("exact"), self.trace("exact"), "--fail-if", "live>+0%")
        self.assertIn("live at end  the same: ", result.stdout)
        self.assertIn("Every function holds as much in B as in A.", result.stdout)

    def test_files_without_errors_say_so(self):
        a = self.file("a.folded", "main;load 100\nmain;parse 50\n")
        b = self.file("b.folded", "main;load 130\nmain;parse 50\n")
        result = self.run_tool("diff", a, b)
        self.assertIn("the sampling error of these figures is not known", result.stdout)
        self.assertIn("(20% of A): from 150 B to 180 B", result.stdout)
        self.run_tool("diff", a, b, "--fail-if", "live>+20%")
        self.run_tool("diff", a, b, "--fail-if", "live>+19%", code=5)


class Leaks(InspectTest):
    def test_what_grows_comes_first(self):
        leaks = json.loads(self.run_tool("leaks", "--json", self.trace("growing")).stdout)
        self.assertEqual(leaks["dumps"], 7)
        first = leaks["stacks"][0]
        self.assertEqual(first["evidence"], "grows")
        self.assertAlmostEqual(first["live_bytes"], 60 * 100_000, delta=1000)
        self.assertAlmostEqual(first["growth_bytes"], 50 * 100_000, delta=1000)
        self.assertAlmostEqual(first["freed_bytes"], 60 * 50_000, delta=1000)
        self.assertEqual(first["live_bytes_by_dump"], sorted(first["live_bytes_by_dump"]))
        self.assertEqual(leaks["held_bytes"], sum(stack["live_bytes"] for stack in leaks["stacks"]))
        self.assertEqual(leaks["live_bytes"], self.query(
            self.trace("growing"), "select sum(size) as live from heap_profile_allocation")[0]["live"])
        table = self.run_tool("leaks", "--top", "1", self.trace("growing")).stdout
        self.assertIn("This is evidence, not proof: the program may still need it.", table)
        self.assertRegex(table, r"   1  grows +5\.72 MiB +\+4\.77 MiB +2\.86 MiB +(\d+|\d\.\d) \S+ +\S")

    def test_missing_evidence_is_said(self):
        self.assertIn("the file has 1 of this heap", self.run_tool("leaks", self.trace("small")).stdout)
        folded = self.file("once.folded", "main;load 70\n")
        text = self.run_tool("leaks", folded).stdout
        for part in ("There is none", "heap_profile -c 1000", "the file does not tell"):
            self.assertIn(part, text)


    def test_what_is_new_can_be_left_out(self):
        everything = json.loads(self.run_tool("leaks", "--json", self.trace("growing")).stdout)
        older = json.loads(self.run_tool("leaks", "--json", "--leave-out-newest", "50", self.trace("growing")).stdout)
        self.assertEqual(everything["left_out_bytes"], 0)
        self.assertGreater(older["left_out_bytes"], 0)
        self.assertAlmostEqual(older["held_bytes"] + older["left_out_bytes"], everything["held_bytes"], delta=2)
        self.assertGreater(everything["stacks"][0]["median_age_ms"], 0)
        table = self.run_tool("leaks", "--leave-out-newest", "50", self.trace("growing")).stdout
        self.assertRegex(table, r"  Left out: .* of the last 50 % of the time\.")
        folded = self.file("ages.folded", "main;load 70\n")
        self.assertIn("does not tell how old they are", self.run_tool("leaks", "--leave-out-newest", "10", folded, code=2).stderr)

    def test_known_stacks_are_suppressed(self):
        everything = json.loads(self.run_tool("leaks", "--json", self.trace("growing")).stdout)
        name = everything["stacks"][0]["stack"][0]["name"]
        known = self.file("known.supp", f"# ours\nleak:^{name}$\nleak:nobody\n")
        rest = json.loads(self.run_tool("leaks", "--json", "--suppressions", known, self.trace("growing")).stdout)
        gone = [stack for stack in everything["stacks"] if any(function["name"] == name for function in stack["stack"])]
        self.assertEqual(rest["suppressions"], [
            {"pattern": f"^{name}$", "stacks": len(gone), "live_bytes": sum(stack["live_bytes"] for stack in gone)},
            {"pattern": "nobody", "stacks": 0, "live_bytes": 0}])
        self.assertEqual(rest["held_bytes"], everything["held_bytes"] - sum(stack["live_bytes"] for stack in gone))
        other = self.file("other.supp", "leak:^/nowhere/bin/x$\n")
        both = json.loads(self.run_tool("leaks", "--json", "--suppressions", known, "--suppressions", other, self.trace("growing")).stdout)
        self.assertEqual(both["suppressions"][:2], rest["suppressions"])
        self.assertEqual(both["suppressions"][2]["pattern"], "^/nowhere/bin/x$")
        table = self.run_tool("leaks", "--suppressions", known, self.trace("growing")).stdout
        self.assertIn(f"  Suppressed by leak:^{name}$: ", table)
        wrong = self.file("wrong.supp", "race:x\n")
        self.assertIn("line 1 is neither leak:PATTERN nor a comment (#)",
                      self.run_tool("leaks", "--suppressions", wrong, self.trace("growing"), code=2).stderr)


class Export(InspectTest):
    def exported(self, form, *options, source=None):
        output = self.path("out." + form)
        self.run_tool("export", "--format", form, *options, source or self.trace("small"), "-o", output)
        with open(output, "rb") as file:
            return file.read()

    def test_pprof_has_all_that_the_recording_has(self):
        def stacks(profile):
            names = {function.id: profile.string_table[function.name] for function in profile.function}
            lines = {location.id: tuple(names[line.function_id] for line in location.line) for location in profile.location}
            addresses = {location.id: location.address for location in profile.location}
            return sorted((tuple((lines[id], addresses[id]) for id in sample.location_id), tuple(sample.value))
                          for sample in profile.sample)
        made = pprof_pb2.Profile()
        made.ParseFromString(gzip.decompress(self.exported("pprof")))
        own = self.pprof("small")[1]
        self.assertEqual(stacks(made), stacks(own))
        mappings = [{profile.string_table[mapping.filename]: profile.string_table[mapping.build_id] for mapping in profile.mapping}
                    for profile in (made, own)]
        self.assertEqual({path: mappings[1].get(path) for path in mappings[0]}, mappings[0])

    def test_totals_agree_to_the_byte(self):
        for view, column in (("space", "sum(size)"), ("objects", "sum(count)"), ("alloc_space", "sum(max(size, 0))"),
                             ("alloc_objects", "sum(max(count, 0))")):
            with self.subTest(view):
                (row,) = self.query(self.trace("small"), f"select {column} as total from heap_profile_allocation")
                folded = self.exported("folded", "--view", view).decode()
                self.assertEqual(sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines()), row["total"])
                (profile,) = json.loads(self.exported("speedscope", "--view", view))["profiles"]
                self.assertEqual((sum(profile["weights"]), profile["endValue"]), (row["total"], row["total"]))
                rows = list(csv.DictReader(io.StringIO(self.exported("csv", "--view", view).decode())))
                self.assertEqual(sum(int(line["itself"]) for line in rows), row["total"])
                self.assertEqual(max(int(line["total"]) for line in rows), row["total"])

    def test_speedscope_files_are_well_formed(self):
        data = json.loads(self.exported("speedscope"))
        frames = data["shared"]["frames"]
        for profile in data["profiles"]:
            self.assertEqual(len(profile["samples"]), len(profile["weights"]))
            self.assertTrue(all(0 <= row < len(frames) for sample in profile["samples"] for row in sample))

    def test_of_a_maximum_it_is_what_was_live_then(self):
        folded = self.exported("folded", source=self.trace("maximum")).decode()
        (row,) = self.query(self.trace("maximum"), "select live_size from heap_dump")
        self.assertEqual(sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines()), row["live_size"])

    def test_standard_output(self):
        result = self.run_tool("export", "--format", "csv", self.trace("exact"))
        self.assertTrue(result.stdout.startswith("function,module,place,itself,total\n"))


if __name__ == "__main__":
    unittest.main()
