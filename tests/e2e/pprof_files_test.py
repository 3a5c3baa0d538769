"""What pprof profiles and folded stacks of other programs say, and what they do not: of each kind of file one that is made
here, read by tools/check_pprof_corpus, and asked for in every way there is."""

import gzip
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import pprof_pb2
from profile_run import HEAP_PROFILE

CHECKER = pathlib.Path(__file__).resolve().parents[2] / "tools" / "check_pprof_corpus"

GO = (("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes"))
TCMALLOC = (("objects", "count"), ("space", "bytes"), ("resident_space", "bytes"), ("stale_space", "bytes"))
MAXIMUM = (("alloc_objects", "count"), ("alloc_space", "bytes"), ("objects", "count"), ("space", "bytes"), ("max_objects", "count"),
           ("max_space", "bytes"))


def pprof(types, samples, default="", order=None):
    """`types`: (name, unit). `samples`: {function: values}."""
    profile = pprof_pb2.Profile()
    profile.string_table.append("")

    def text(word):
        if word not in profile.string_table:
            profile.string_table.append(word)
        return list(profile.string_table).index(word)

    for name, unit in types:
        profile.sample_type.add(type=text(name), unit=text(unit))
    for number, (name, values) in enumerate(samples.items(), 1):
        profile.function.add(id=number, name=text(name), system_name=text(name))
        profile.location.add(id=number).line.add(function_id=number)
        profile.sample.add(location_id=[number], value=values)
    profile.default_sample_type = text(default)
    if order is None:
        return profile.SerializeToString()
    parts = []
    for name in order:
        part = pprof_pb2.Profile()
        part.CopyFrom(profile)
        for other in ("sample_type", "sample", "mapping", "location", "function", "string_table", "default_sample_type"):
            if other != name:
                part.ClearField(other)
        parts.append(part.SerializeToString())
    return b"".join(parts)


KINDS = {
    "go.pb": pprof(GO, {"f": [5, 500, 2, 200], "g": [1, 50, 1, 50]}),
    "go_delta.pb": pprof(GO, {"f": [0, 0, 1000, 1 << 20], "g": [9, 900, 1, 100]}),
    "live_last.pb": pprof(GO[2:] + GO[:2], {"f": [2, 200, 5, 500]}),
    "live_only.pb": pprof(GO[3:], {"f": [200]}),
    "allocations.pb": pprof(GO[:2], {"f": [5, 500]}),
    "allocated_objects.pb": pprof(GO[:1], {"f": [5]}),
    "tcmalloc.pb": pprof(TCMALLOC, {"f": [1, 10485760, 8900000, 0], "g": [1, 1048576, 4096, 0]}, default="space"),
    "tcmalloc_allocations.pb": pprof(TCMALLOC[:2], {"f": [1, 1000]}, default="objects"),
    "datadog.pb": pprof((("cpu", "nanoseconds"), ("alloc-samples", "count"), ("alloc-space", "bytes"), ("heap-space", "bytes"),
                         ("lock-acquire", "count")), {"f": [7, 3, 300, 90, 4]}),
    "tlab.pb": pprof((("alloc_in_new_tlab_bytes", "bytes"), ("alloc_outside_tlab_bytes", "bytes")), {"f": [15_000_000, 50]}),
    "megabytes.pb": pprof((("inuse_space", "megabytes"),), {"f": [10]}),
    "android.pb": pprof((("Total malloc count", "count"), ("Total malloc size", "bytes"), ("Unreleased malloc count", "count"),
                         ("Unreleased malloc size", "bytes")), {"f": [9, 900, 4, 400]}),
    "maximum.pb": pprof(MAXIMUM, {"big": [1, 20000, 0, 0, 1, 20000], "kept": [1, 1000, 1, 1000, 0, 0]}, default="max_space"),
    "difference.pb": pprof(GO[2:], {"f": [-9, -900], "g": [10, 1000]}),
    "cpu.pb": pprof((("samples", "count"), ("cpu", "nanoseconds")), {"f": [47, 470_000_000]}),
    "goroutine.pb": pprof((("goroutine", "count"),), {"f": [10]}),
    "contentions.pb": pprof((("contentions", "count"), ("delay", "nanoseconds")), {"f": [1, 2]}),
    "strings_first.pb": pprof(GO, {"f": [5, 500, 2, 200]}, default="inuse_space",
                              order=("default_sample_type", "string_table", "sample", "location", "function", "sample_type")),
    "plain.folded": b"main;f 100\nmain;f;g 20\n",
    "austin.folded": b"# austin: 3.5\n# mode: memory\nP1;T1;a.py:f:3 200\nP1;T1;a.py:g:9 91\n# duration: 23973\n",
    "empty_line.folded": b"\nmain;f 10\n",
    "fractions.folded": b"main;f 1.5\nmain;g 2.25\nmain;h 0.25\n",
    "difference.folded": b"main;f -10\nmain;g 5\n",
    "two_values.folded": b"main;f 10 30\nmain;g 5 5\n",
    "vmstat.txt": b"nr_free_pages 100\nnr_zone_inactive_anon 200\n",
    "contention.txt": b"--- contentionz 1 ---\ncycles/second = 3201000000\nsampling period = 100\n",
    "log.txt": b"Jan 1 server; started in 5\nready\nwaiting\n",
    "table.csv": b"name,bytes\nf;g,5\n",
    "some.json": b'{"a;b": 5}\n',
}


class FilesOfOthers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(holder.cleanup)
        cls.directory = holder.name
        for name, content in KINDS.items():
            with open(os.path.join(cls.directory, name), "wb") as file:
                file.write(content)

    def path(self, name):
        return os.path.join(self.directory, name)

    def run_tool(self, *arguments, code=0):
        done = subprocess.run([HEAP_PROFILE, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120, check=False)
        self.assertEqual(done.returncode, code, f"{arguments}\n{done.stdout}{done.stderr}")
        return done

    def json(self, *arguments):
        return json.loads(self.run_tool(*arguments, "--json").stdout)

    def test_every_sum_is_that_of_another_decoder(self):
        done = subprocess.run(["python3", "-B", CHECKER, "--tool", HEAP_PROFILE, self.directory], capture_output=True, text=True,
                              timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("pprof, not of memory: 3 the same, 0 different", done.stdout)

    def test_the_checker_finds_what_differs(self):
        liar = self.path("liar.sh")
        with open(liar, "w") as file:
            file.write(f'#!/bin/sh\nexec "{HEAP_PROFILE}" "$1" "$2" "{self.path("go.pb")}" "$4"\n')
        os.chmod(liar, 0o755)
        self.addCleanup(os.unlink, liar)
        with tempfile.TemporaryDirectory() as directory:
            with open(os.path.join(directory, "x.pb"), "wb") as file:
                file.write(KINDS["live_last.pb"])
            done = subprocess.run(["python3", "-B", CHECKER, "--tool", liar, directory], capture_output=True, text=True, timeout=100, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("live_size is 250, not 200", done.stdout)

    def test_what_is_not_told_is_unknown_everywhere(self):
        for name, figure, view in (("allocations.pb", "live", "space"), ("live_only.pb", "allocated", "alloc_space"),
                                   ("plain.folded", "calls", "alloc_objects")):
            path = self.path(name)
            with self.subTest(name):
                title = "live at end" if figure == "live" else "allocated"
                self.assertRegex(self.run_tool("show", path).stdout, f"\n  {title} +unknown\n")
                self.assertRegex(self.run_tool("stats", path).stdout, f"\n  {title} +unknown\n")
                words = f"{path} does not tell {figure}"
                self.assertIn(words, self.run_tool("stats", "--fail-if", f"{figure}>1", path, code=2).stderr)
                self.assertIn(words, self.run_tool("diff", "--fail-if", f"{figure}>1", path, path, code=2).stderr)
                words = f"cannot export {view}: {path} does not tell it; it tells --view "
                for kind in ("folded", "speedscope", "csv"):
                    self.assertIn(words, self.run_tool("export", "--format", kind, "--view", view, path, code=2).stderr)
                others = "alloc_space is told" if name == "allocations.pb" else "space is told"
                self.assertIn(f"cannot sum this view: the file of dump 0 does not tell it; {others}",
                              self.run_tool("query", path, f"SELECT * FROM flamegraph(0, '{view}')", code=1).stderr)
                self.assertIn("cannot sum this view", self.run_tool("query", path, f"SELECT * FROM top('{view}')", code=1).stderr)

    def test_counts_alone_are_told(self):
        words = self.run_tool("query", self.path("allocated_objects.pb"), "SELECT * FROM flamegraph(0)", code=1).stderr
        self.assertIn("does not tell it; alloc_objects is told", words)
        shown = self.run_tool("show", self.path("allocated_objects.pb")).stdout
        self.assertRegex(shown, "\n  allocated +unknown size in 5 calls\n")

    def test_callers_have_no_figure_that_is_not_told(self):
        rows = self.json("query", self.path("allocations.pb"), "SELECT count, size, alloc_count, alloc_size FROM callers('f')")
        self.assertEqual(rows, [{"count": None, "size": None, "alloc_count": 5, "alloc_size": 500}])
        rows = self.json("query", self.path("plain.folded"), "SELECT count, size, alloc_count, alloc_size FROM callers('g')")
        self.assertEqual(rows, [{"count": None, "size": 20, "alloc_count": None, "alloc_size": None}])

    def test_leaks_and_diff_say_what_they_lack(self):
        path = self.path("allocations.pb")
        self.assertIn("it does not tell what is live", self.run_tool("leaks", path, code=4).stderr)
        self.assertIn("What functions hold is not known of both.", self.run_tool("diff", path, path).stdout)
        self.assertIsNone(self.json("diff", path, path)["functions"])
        # More is live than was allocated: nothing can be said of what was freed.
        self.assertFalse(self.json("leaks", self.path("go_delta.pb"))["tells_frees"])

    def test_what_is_exported_comes_back(self):
        for name in ("go.pb", "go_delta.pb", "live_only.pb", "allocations.pb", "allocated_objects.pb", "tcmalloc.pb", "datadog.pb", "maximum.pb",
                     "plain.folded"):
            with self.subTest(name), tempfile.TemporaryDirectory() as directory:
                made = os.path.join(directory, "made.pb.gz")
                self.run_tool("export", "--format", "pprof", self.path(name), "-o", made)
                keys = [end + limit for end in ("live_bytes", "alloc_bytes", "alloc_calls", "peak_bytes") for limit in ("", "_low", "_high")]
                before, after = self.json("stats", self.path(name)), self.json("stats", made)
                self.assertEqual([before[key] for key in keys if "_low" not in key and "_high" not in key],
                                 [after[key] for key in keys if "_low" not in key and "_high" not in key])
                with gzip.open(made) as file:
                    profile = pprof_pb2.Profile.FromString(file.read())
                types = [profile.string_table[kind.type] for kind in profile.sample_type]
                self.assertEqual("alloc_space" in types, before["alloc_bytes"] is not None)
                self.assertIn(profile.string_table[profile.default_sample_type], types)

    def test_the_maximum_is_not_the_end(self):
        shown = self.run_tool("show", self.path("maximum.pb")).stdout
        self.assertRegex(shown, "live at end +1000 B +peak 19.5 KiB\n")
        self.assertIn("Top live memory at peak", shown)
        self.run_tool("stats", "--fail-if", "live>5000", self.path("maximum.pb"))

    def test_a_difference_is_said(self):
        for name, words in (("difference.pb", "1 of its samples are negative"), ("difference.folded", "1 of its stacks are negative")):
            self.assertIn(words, self.run_tool("stats", self.path(name)).stdout)
        self.assertEqual(self.json("stats", self.path("difference.folded"))["live_bytes"], -5)
        self.assertEqual(self.run_tool("export", "--format", "folded", self.path("difference.pb")).stdout, "f -900\ng 1000\n")

    def test_a_heap_dump_as_text_is_no_heap_dump(self):
        path = self.path("java.hprof.txt")
        with open(path, "w") as file:
            file.write("JAVA PROFILE 1.0.1, created Sat Jan  1 2000\n\nHeader for -agentlib:hprof\n")
        self.addCleanup(os.unlink, path)
        self.assertIn("it is a heap dump of Java as text; jcmd PID GC.heap_dump", self.run_tool("show", path, code=1).stderr)
        self.assertIn("it is a heap dump as text", self.run_tool("hprof", "histogram", path, code=1).stderr)

    def test_records_that_were_left_out_are_the_reason(self):
        """Two profiles with other values, one behind the other."""
        path = self.path("joined")
        with open(path, "wb") as file:
            file.write(KINDS["go.pb"] + KINDS["live_only.pb"])
        self.addCleanup(os.unlink, path)
        self.assertIn("none of its samples makes sense (a value for each of its 5 types", self.run_tool("show", path, code=4).stderr)


class OurOwnFiles(unittest.TestCase):
    """What our recordings leave as pprof says the same as their traces."""

    KEYS = ("live_bytes", "alloc_bytes", "alloc_calls", "peak_bytes")

    def record(self, *options):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        out = pathlib.Path(holder.name) / "out"
        subprocess.run([HEAP_PROFILE, "-q", "--no-report", "-i", "1", *options, "-o", out, "--", "/usr/bin/python3", "-c",
                        "hump = bytearray(20_000_000); del hump; kept = bytearray(1_000_000)"], check=True, capture_output=True,
                        stdin=subprocess.DEVNULL, timeout=120)
        return out

    def stats(self, path):
        done = subprocess.run([HEAP_PROFILE, "stats", "--json", path], capture_output=True, text=True, timeout=120, check=True)
        return {key: json.loads(done.stdout)[key] for key in self.KEYS}

    def exported(self, out):
        made = out / "exported.pb.gz"
        subprocess.run([HEAP_PROFILE, "export", "--format", "pprof", out / "raw-trace", "-o", made], check=True, timeout=120)
        return made

    def test_the_end(self):
        out = self.record()
        want = {**self.stats(out / "raw-trace"), "peak_bytes": None}  # which pprof has no value for
        (dump,) = out.glob("heap_dump.*.pb.gz")
        self.assertEqual(self.stats(dump), want)
        self.assertEqual(self.stats(self.exported(out)), want)

    def test_the_maximum(self):
        out = self.record("--dump-at-max")
        want = self.stats(out / "raw-trace")
        self.assertGreater(want["peak_bytes"], want["live_bytes"])
        (dump,) = out.glob("heap_dump.*.pb.gz")
        for path in (dump, self.exported(out)):
            self.assertEqual(self.stats(path), want)
            shown = subprocess.run([HEAP_PROFILE, "show", path], capture_output=True, text=True, timeout=120, check=True).stdout
            self.assertIn("Top live memory at peak", shown)
        diff = subprocess.run([HEAP_PROFILE, "diff", out / "raw-trace", dump], capture_output=True, text=True, timeout=120, check=True).stdout
        self.assertIn("live at end  the same", diff)


if __name__ == "__main__":
    unittest.main()
