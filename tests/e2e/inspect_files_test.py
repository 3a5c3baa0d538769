"""stats, diff and leaks of files that were made here: what they say where a file does not tell all."""

import gzip
import json
import os
import random
import subprocess
import tempfile
import unittest

import pprof_pb2
import trace_pb2
from profile_run import HEAP_PROFILE


def trace_of(*heaps, pid=7, ends=True):
    """A trace of one process. `heaps`: (name, {function: (count, bytes, freed count, freed bytes)}, other fields). One
    that tells of quality is ours, and comes to its end unless `ends` is False."""
    trace = trace_pb2.Trace()
    tables = trace.packet.add(trusted_packet_sequence_id=2, sequence_flags=1).interned_data
    for table in (tables.build_ids, tables.mapping_paths, tables.function_names):
        table.add(iid=0, str=b"")
    tables.mapping_paths.add(iid=1, str=b"demo")
    tables.mappings.add(iid=2, build_id=0, path_string_ids=[1], start=0x1000, end=0x90000)
    packet = trace.packet.add(trusted_packet_sequence_id=2).profile_packet
    packet.index = 0
    iids = {}
    for name, functions, fields in heaps:
        dump = packet.process_dumps.add(pid=pid, heap_name=name, timestamp=1100, **fields)
        for function, (count, size, freed_count, freed) in functions.items():
            if function not in iids:
                iid = iids[function] = 10 + len(iids)
                tables.function_names.add(iid=iid, str=function.encode())
                tables.frames.add(iid=iid, function_name_id=iid, mapping_id=2, rel_pc=0x100 * iid)
                tables.callstacks.add(iid=iid, frame_ids=[iid])
            dump.samples.add(callstack_id=iids[function], alloc_count=count, self_allocated=size, free_count=freed_count,
                             self_freed=freed)
    if ends and any("quality" in fields for _, _, fields in heaps):
        trace.packet.add(trusted_packet_sequence_id=1).recording_end.SetInParent()
    return trace.SerializeToString()


class FilesTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.directory = holder.name

    def file(self, name, content):
        path = os.path.join(self.directory, name)
        with open(path, "wb") as file:
            file.write(content)
        return path

    def run_tool(self, *arguments, code=0):
        result = subprocess.run([HEAP_PROFILE, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result

    def json(self, *arguments, code=0):
        return json.loads(self.run_tool(*arguments, "--json", code=code).stdout)


def pprof_of(functions, period=4096, unit="bytes", types=("objects", "space")):
    """A profile as Go and others write it. `functions`: {name: values}."""
    profile = pprof_pb2.Profile(period=period, time_nanos=1_700_000_000_000_000_000)
    strings = profile.string_table
    strings.extend(["", "count", "bytes", unit, "space"])
    profile.period_type.type, profile.period_type.unit = 4, 3
    for name in types:
        strings.append(name)
        profile.sample_type.add(type=len(strings) - 1, unit=1 if "objects" in name else 2)
    for name, values in functions.items():
        strings.append(name)
        id = len(profile.function) + 1
        profile.function.add(id=id, name=len(strings) - 1)
        profile.location.add(id=id).line.add(function_id=id)
        profile.sample.add(location_id=[id], value=values)
    return gzip.compress(profile.SerializeToString())


class Directories(FilesTest):
    """What heap_profile prints at its end is a directory: it stands for the recording in it."""

    def test_the_trace_in_it_is_read(self):
        content = trace_of(("libc.malloc", {"main": (256, 1 << 20, 0, 0)}, {"sampling_interval_bytes": 4096}))
        path = self.file("raw-trace", content)
        self.assertEqual(self.json("stats", self.directory)["live_bytes"], 1 << 20)
        self.assertEqual(self.json("diff", self.directory, path)["functions"], [])
        self.assertIn("main", self.run_tool("show", self.directory).stdout)
        self.assertEqual(self.run_tool("query", "--csv", self.directory, "SELECT live_size FROM heap_dump").stdout,
                         '"live_size"\n1048576\n')
        self.assertEqual(self.run_tool("traceconv", "text", self.directory).stdout, self.run_tool("traceconv", "text", path).stdout)
        bundle = os.path.join(self.directory, "bundle")
        self.run_tool("traceconv", "bundle", self.directory, bundle)
        self.assertEqual(self.json("stats", bundle)["live_bytes"], 1 << 20)

    def test_one_without_a_recording_is_refused(self):
        for command in ("show", "stats", "query"):
            self.assertIn(f"cannot open trace {self.directory}/raw-trace: No such file or directory",
                          self.run_tool(command, self.directory, code=1).stderr)


class GoProfiles(FilesTest):
    def test_what_go_writes_is_read(self):
        """The period's type comes first there, the texts last."""
        kinds = ("alloc_objects", "alloc_space", "inuse_objects", "inuse_space")
        rest = pprof_pb2.Profile.FromString(gzip.decompress(pprof_of({"main.keep": [30, 3 << 20, 10, 1 << 20]}, types=kinds)))
        first = pprof_pb2.Profile()
        first.period_type.CopyFrom(rest.period_type)
        rest.ClearField("period_type")
        for name, content in (("go.pb", first.SerializeToString() + rest.SerializeToString()),
                              ("go.pb.gz", gzip.compress(first.SerializeToString() + rest.SerializeToString()))):
            path = self.file(name, content)
            stats = self.json("stats", path)
            self.assertEqual((stats["live_bytes"], stats["alloc_bytes"], stats["alloc_calls"]), (1 << 20, 3 << 20, 30))
            self.assertEqual(self.run_tool("export", "--format", "folded", path).stdout, "main.keep 1048576\n")

    def test_profiles_of_processors_are_refused(self):
        """Go's have samples, counted, and nanoseconds; time and duration come first."""
        rest = pprof_pb2.Profile.FromString(gzip.decompress(pprof_of({"main.spin": [40, 400_000_000]}, unit="nanoseconds",
                                                                     types=("samples", "cpu"))))
        rest.sample_type[0].unit, rest.sample_type[1].unit = 1, 3
        first = pprof_pb2.Profile(time_nanos=rest.time_nanos)
        rest.ClearField("time_nanos")
        path = self.file("go.cpu", first.SerializeToString() + rest.SerializeToString())
        words = f"cannot read {path}: it is no profile of memory, but of samples in count, cpu in nanoseconds; go tool pprof shows it"
        for arguments in (["show", path], ["stats", path], ["stats", "--fail-if", "live>1", path], ["export", "--format", "folded", path]):
            self.assertIn(words, self.run_tool(*arguments, code=2).stderr)

    def test_what_is_no_recording_has_neither_duration_nor_quality(self):
        path = self.file("go.pb", gzip.decompress(pprof_of({"main.keep": [10, 1 << 20]})))
        made = os.path.join(self.directory, "made.pb.gz")
        self.run_tool("export", "--format", "pprof", path, "-o", made)
        with gzip.open(made) as file:
            profile = pprof_pb2.Profile.FromString(file.read())
        self.assertEqual(profile.duration_nanos, 0)
        self.assertFalse([text for text in profile.string_table if text.startswith("quality:")])


class LinkersNames(FilesTest):
    """Names are for people, wherever they come from: what two files call one function is one function."""

    def setUp(self):
        super().setUp()
        fields = {"sampling_interval_bytes": 4096}
        self.trace = self.file("trace", trace_of(("libc.malloc", {"_ZN4pool4growEm": (256, 1 << 20, 0, 0)}, fields)))
        self.pprof = os.path.join(self.directory, "p.pb.gz")
        self.run_tool("export", "--format", "pprof", self.trace, "-o", self.pprof)

    def test_a_trace_and_a_pprof_profile_are_compared(self):
        result = self.json("diff", self.trace, self.pprof)
        self.assertEqual((result["live_bytes"]["b"], result["functions"]), (1 << 20, []))

    def test_exports_of_both_are_the_same(self):
        for path in (self.trace, self.pprof):
            self.assertEqual(self.run_tool("export", "--format", "folded", path).stdout, "pool::grow(unsigned long) 1048576\n")

    def test_sql_has_both(self):
        rows = self.run_tool("query", "--csv", self.pprof, "SELECT s.name, f.name FROM stack_profile_frame f "
                             "JOIN stack_profile_symbol s USING (symbol_set_id)").stdout
        self.assertIn('"pool::grow(unsigned long)","_ZN4pool4growEm"', rows)


class SampledFiles(FilesTest):
    """1 MiB in blocks of 64 bytes, of which 1 in 4096 bytes was sampled: a standard error of 65 kB."""

    def test_the_error_of_a_pprof_profile_is_estimated(self):
        path = self.file("p.pb.gz", pprof_of({"main": [16384, 1 << 20]}))
        stats = self.json("stats", path)
        self.assertEqual(stats["live_bytes"], 1 << 20)
        self.assertAlmostEqual(stats["live_bytes_low"], (1 << 20) - 1.96 * 65000, delta=8000)
        self.assertAlmostEqual(stats["live_bytes_high"], (1 << 20) + 1.96 * 65000, delta=12000)
        self.assertRegex(self.run_tool("stats", path).stdout, r"live at end  1\.00 MiB +95 % between 9\d\d KiB and 1\.1\d MiB")
        self.assertRegex(self.run_tool("show", path).stdout, r"live at end  1\.00 MiB \(±1[23]%\)")

    def test_gates_know_it(self):
        path = self.file("p.pb.gz", pprof_of({"main": [16384, 1 << 20]}))
        more = self.file("more.pb.gz", pprof_of({"main": [17000, 17000 * 64]}))
        for arguments in (["stats", "--fail-if", "live>1000KiB", path], ["diff", "--fail-if", "live>+2%", path, more]):
            self.assertIn("is within the sampling error (95 %): not failed", self.run_tool(*arguments).stderr)
        self.assertIn("has come true", self.run_tool("stats", "--fail-if", "live>800KiB", path, code=5).stderr)
        self.assertTrue(self.json("diff", path, more)["error_is_known"])

    def test_what_was_allocated_is_an_estimate_too(self):
        path = self.file("p.pb.gz", pprof_of({"main": [16384, 1 << 20, 0, 0]},
                                             types=("alloc_objects", "alloc_space", "objects", "space")))
        stats = self.json("stats", path)
        for name, figure, error in (("alloc_bytes", 1 << 20, 65000), ("alloc_calls", 16384, 1020)):
            self.assertEqual(stats[name], figure)
            self.assertAlmostEqual(stats[name + "_high"] - stats[name], 1.96 * error, delta=0.2 * error)

    def test_without_counts_the_error_is_the_largest_there_is(self):
        path = self.file("p.pb.gz", pprof_of({"main": [1 << 20, 0]}, types=("alloc_space", "space")))
        stats = self.json("stats", path)
        self.assertAlmostEqual(stats["alloc_bytes_low"], (1 << 20) - 1.96 * 65536, delta=8000)
        self.assertEqual((stats["alloc_calls"], stats["alloc_calls_low"]), (None, None))

    def test_large_blocks_and_all_blocks_have_none(self):
        for profile in (pprof_of({"main": [2, 2 << 20]}), pprof_of({"main": [16384, 1 << 20]}, period=1)):
            stats = self.json("stats", self.file("p.pb.gz", profile))
            self.assertAlmostEqual(stats["live_bytes_low"], stats["live_bytes"], delta=1)

    def test_perfettos_traces_have_the_largest_error_there_is(self):
        fields = {"sampling_interval_bytes": 4096, "orig_sampling_interval_bytes": 4096}
        stats = self.json("stats", self.file("t", trace_of(("libc.malloc", {"main": (256, 1 << 20, 0, 0)}, fields))))
        self.assertAlmostEqual(stats["live_bytes_low"], (1 << 20) - 1.96 * 65536, delta=8000)
        self.assertIsNone(stats["alloc_calls_low"], "they count samples")

    def test_where_nothing_tells_how_it_was_sampled_each_gate_says_so(self):
        for name, content in (("x.folded", b"main;f 1048576\n"), ("p.pb.gz", pprof_of({"main": [16384, 1 << 20]}, unit="nanoseconds"))):
            path = self.file(name, content)
            stats = self.json("stats", path)
            self.assertEqual((stats["live_bytes"], stats["live_bytes_low"], stats["live_bytes_high"]), (1 << 20, None, None))
            self.assertIn("1.00 MiB    the file does not tell its sampling error", self.run_tool("stats", path).stdout)
            for arguments in (["stats", "--json", "--fail-if", "live>1000KiB", path], ["diff", "--json", "--fail-if", "live<1", path, path]):
                result = self.run_tool(*arguments, code=5)
                self.assertIn("is judged as if exact: the sampling error is not known", result.stderr)
                self.assertFalse(json.loads(result.stdout)["thresholds"][0]["error_is_known"])
            other = self.file("y.folded", b"main;f 1\n")
            diff = self.json("diff", path, other)
            self.assertEqual((diff["live_bytes"]["change_low"], diff["live_bytes"]["is_noise"]), (None, None))
            self.assertEqual((diff["functions"][0]["error"], diff["functions"][0]["is_noise"]), (None, None))


class LostRecords(FilesTest):
    def lossy(self, name, interval=1, **quality):
        return self.file(name, trace_of(("libc.malloc", {"main": (4, 4 << 20, 0, 0)}, {
            "sampling_interval_bytes": interval, "orig_sampling_interval_bytes": interval, "quality": quality, "live_low": 3 << 20,
            "live_high": 5 << 20, "exact_alloc_calls": 4, "exact_alloc_bytes": 4 << 20})))

    def test_figures_are_marked_and_gates_say_it(self):
        for interval in (1, 4096):
            lost, whole = self.lossy("lost", interval, lost_records=12), self.lossy("whole", interval)
            words = f"lacks records (lost_records 12): it may hold more or less than is told here, beyond all limits; heap_profile show {lost}"
            self.assertRegex(self.run_tool("stats", lost).stdout, r"live at end  4.00 MiB .*\(incomplete\)\n")
            self.assertNotIn("incomplete", self.run_tool("stats", whole).stdout)
            self.assertIn("the same: 4.00 MiB (incomplete)", self.run_tool("diff", lost, whole).stdout)
            for arguments in (["stats", lost], ["diff", lost, whole], ["diff", whole, lost], ["leaks", lost]):
                self.assertIn(words, self.run_tool(*arguments).stdout)
                self.assertIn(words, " ".join(self.json(*arguments)["warnings"]))
            for arguments in (["stats", "--fail-if", "live<100MiB", lost], ["diff", "--fail-if", "live<+1GiB", lost, whole]):
                result = self.run_tool(*arguments, "--json", code=5)
                self.assertIn("is judged without the records that are missing, and may be wrong", result.stderr)
                self.assertTrue(json.loads(result.stdout)["thresholds"][0]["is_incomplete"])
            self.assertEqual(self.run_tool("stats", "--fail-if", "calls<3", lost).stderr, "", "they are counted")


class CutFiles(FilesTest):
    LOST = "the file is incomplete, and what could be read of it has no samples; copy it again, or record again"

    def test_the_cut_is_the_reason_for_nothing(self):
        whole = trace_of(("libc.malloc", {}, {"reason": "the program is statically linked"}))
        for cut in (whole + b"\x0a\x7f\x08", trace_of(("libc.malloc", {"main": (1, 100, 0, 0)}, {}))[:-5]):
            path, other = self.file("cut", cut), self.file("other.folded", b"main;f 1\n")
            for arguments in (["show", path], ["stats", path], ["leaks", path], ["diff", path, other], ["diff", other, path],
                              ["export", "--format", "csv", path]):
                stderr = self.run_tool(*arguments, code=4).stderr
                self.assertIn(self.LOST, stderr)
                self.assertNotIn("linked", stderr)
        self.assertIn("linked", self.run_tool("show", self.file("whole", whole), code=4).stderr)

    def test_one_that_ends_between_packets(self):
        fields = {"reason": "the program is statically linked", "quality": {"samples": 0}}
        path = self.file("cut", trace_of(("libc.malloc", {}, fields), ends=False))
        self.assertIn(self.LOST, self.run_tool("show", path, code=4).stderr)

    def test_one_that_ends_between_packets_says_so_with_what_is_left(self):
        heap = ("libc.malloc", {"main": (1, 100, 0, 0)}, {"quality": {"samples": 1}})
        cut, whole = self.file("cut", trace_of(heap, ends=False)), self.file("whole", trace_of(heap))
        perfettos = self.file("perfettos", trace_of(heap[:2] + ({},)))
        words = f"{cut} is incomplete: the end of its recording is missing; what comes before is used"
        page = os.path.join(self.directory, "page.html")
        for command in (["show"], ["stats"], ["leaks"], ["diff", whole], ["export", "--format", "folded"], ["query", "-q", "/dev/null"],
                        ["report", "-o", page], ["traceconv", "profile", "--output-dir", self.directory]):
            result = self.run_tool(*command, cut)
            said = result.stdout + result.stderr
            if command[0] == "report":
                with open(page, encoding="utf-8") as file:
                    said += file.read()
            if command[0] == "traceconv":
                words = "the trace is damaged behind 2 packets: the end of its recording is missing; what comes before is used"
            self.assertIn(words, said)
            for path in (whole, perfettos):
                self.assertNotIn("the end of its recording", self.run_tool(*command, path).stdout)

    def test_a_compressed_one(self):
        path = self.file("cut.gz", gzip.compress(trace_of(("libc.malloc", {"main": (1, 100, 0, 0)}, {})))[:-40])
        self.assertIn(self.LOST, self.run_tool("stats", path, code=4).stderr)

    def test_what_is_left_is_told_with_the_cut(self):
        path = self.file("cut", trace_of(("libc.malloc", {"main": (1, 100, 0, 0)}, {})) + b"\x0a\x7f\x08")
        for arguments in (["show", path], ["stats", path], ["leaks", path], ["diff", path, path]):
            self.assertIn("is incomplete: it ends in the middle of a packet; what comes before is used", self.run_tool(*arguments).stdout)


class ChildrenWithoutSamples(FilesTest):
    def test_are_in_the_figures_of_the_file(self):
        more = trace_pb2.Trace()
        more.packet.add(trusted_packet_sequence_id=1).unsampled_children.CopyFrom(
            trace_pb2.UnsampledChildren(pid=7, profiling_start=5, count=90, alloc_calls=46000, alloc_bytes=4_600_000))
        fields = {"sampling_interval_bytes": 1, "exact_alloc_calls": 10, "exact_alloc_bytes": 1000, "profiling_start": 5, "quality": {"samples": 10}}
        path = self.file("t", trace_of(("libc.malloc", {"f": (10, 1000, 5, 500)}, fields), ends=False) + more.SerializeToString())
        stats = self.json("stats", path)
        self.assertEqual((stats["alloc_calls"], stats["alloc_bytes"]), (46010, 4_601_000))
        (heap,) = stats["processes"][0]["heaps"]
        self.assertEqual((heap["alloc_calls"], heap["alloc_bytes"]), (10, 1000))
        self.run_tool("stats", "--fail-if", "calls>10000", path, code=5)


class UntoldFigures(FilesTest):
    def files(self):
        return (self.file("x.folded", b"main;f 37\n"), self.file("p.pb.gz", pprof_of({"main": [1, 37]}, period=1)))

    def test_are_null(self):
        for path in self.files():
            stats = self.json("stats", path)
            for key in ("peak_bytes", "alloc_bytes", "alloc_bytes_low", "alloc_calls"):
                self.assertIsNone(stats[key], key)
            (process,) = stats["processes"]
            self.assertEqual((process["from_startup"], process["rss_kb"], process["quality"]["lost_records"]), (None, None, None))
            self.assertIn("allocated    unknown", self.run_tool("show", path).stdout.splitlines()[3])
            self.assertIn("does not tell allocated", self.run_tool("stats", "--fail-if", "allocated>1", path, code=2).stderr)
        self.assertIsNone(self.json("stats", self.files()[0])["processes"][0]["heaps"][0]["sampling_interval"])

    def test_and_null_in_sql(self):
        for path in (*self.files(), self.file("t", trace_of(("libc.malloc", {"main": (1, 37, 0, 0)}, {})))):
            rows = self.json("query", path, "select peak_size, peak_size_high, exact_alloc_size, exact_alloc_count from heap_dump")
            self.assertEqual(set(rows[0].values()), {None})
        for path in self.files():
            rows = self.json("query", path, "select alloc_size, alloc_count from heap_dump")
            self.assertEqual(set(rows[0].values()), {None})

    def test_one_dump_has_no_growth(self):
        path = self.file("t", trace_of(("libc.malloc", {"keep": (1, 37, 0, 0), "free": (1, 9, 1, 9)}, {})))
        (stack,) = self.json("leaks", path)["stacks"]
        self.assertIsNone(stack["growth_bytes"])


class MissedFunctions(FilesTest):
    def test_are_noise_where_their_blocks_are_small(self):
        exact = self.file("exact.pb.gz", pprof_of({"small": [16, 1150], "large": [1, 9000], "main": [1, 1 << 20]}, period=1))
        sampled = self.file("sampled.pb.gz", pprof_of({"main": [1, 1 << 20]}))
        rows = {row["name"]: row for row in self.json("diff", exact, sampled)["functions"]}
        self.assertTrue(rows["small"]["is_noise"])
        self.assertAlmostEqual(rows["small"]["error"], 3.7 * 4096, delta=200)
        self.assertFalse(rows["large"]["is_noise"], "such a block is always sampled")
        self.assertFalse(any(row["is_noise"] for row in self.json("diff", exact, self.file(
            "all.pb.gz", pprof_of({"main": [1, 1 << 20]}, period=1)))["functions"]))

    def test_perfettos_counts_show_no_sizes(self):
        fields = {"sampling_interval_bytes": 4096, "orig_sampling_interval_bytes": 4096}
        main, few = (256, 1 << 20, 0, 0), (1, 4096, 0, 0)
        a = self.file("a", trace_of(("libc.malloc", {"main": main, "few": few}, fields)))
        b = self.file("b", trace_of(("libc.malloc", {"main": main}, fields)))
        (row,) = self.json("diff", a, b)["functions"]
        self.assertTrue(row["is_noise"])


class RoundedRows(FilesTest):
    def test_no_more_is_live_than_at_the_peak(self):
        path = self.file("t", trace_of(("libc.malloc", {"main": (1, 51, 0, 0), "load": (1, 50, 0, 0)}, {
            "sampling_interval_bytes": 4096, "peak_bytes": 100, "peak_low": 90, "peak_high": 100, "live_low": 10, "live_high": 200})))
        self.assertEqual(self.json("query", path, "select peak_size, peak_size_high, live_size from heap_dump"),
                         [{"peak_size": 101, "peak_size_high": 101, "live_size": 101}])
        stats = self.json("stats", path)
        self.assertEqual((stats["peak_bytes"], stats["peak_bytes_high"]), (101, 101))


class CallSites(FilesTest):
    """What one line of a function frees hides nothing of what another one keeps."""

    def profile(self, kept, freed, period=1):
        """work() allocates at lines 10 (at two addresses) and 20 of demo.c."""
        profile = pprof_pb2.Profile(period=period)
        profile.string_table.extend(["", "count", "bytes", "space", "alloc_space", "space", "work", "main", "demo.c"])
        profile.period_type.type, profile.period_type.unit = 3, 2
        profile.sample_type.add(type=4, unit=2)
        profile.sample_type.add(type=5, unit=2)
        profile.function.add(id=1, name=6, filename=8)
        profile.function.add(id=2, name=7, filename=8)
        for id, (function, line) in enumerate([(1, 10), (1, 10), (1, 20), (2, 30)], 1):
            profile.location.add(id=id, address=0x1000 + id).line.add(function_id=function, line=line)
        for location, values in ((1, kept), (2, kept), (3, freed)):
            profile.sample.add(location_id=[location, 4], value=values)
        return self.file("p.pb.gz", gzip.compress(profile.SerializeToString()))

    def test_what_one_keeps_is_found(self):
        path = self.profile(kept=[100, 100], freed=[200, 0])
        (stack,) = self.json("leaks", path)["stacks"]
        self.assertEqual((stack["evidence"], stack["live_bytes"], stack["freed_bytes"], stack["place"]),
                         ("nothing freed", 200, 0, "demo.c:10"))
        self.assertRegex(self.run_tool("leaks", path).stdout, r"   1  nothing freed +200 B .* work  demo\.c:10\n      ← main")

    def test_one_that_frees_is_none(self):
        self.assertEqual(self.json("leaks", self.profile(kept=[100, 40], freed=[200, 0]))["stacks"], [])

    def test_nor_is_a_single_sample(self):
        self.assertEqual(self.json("leaks", self.profile(kept=[4096, 4096], freed=[8192, 0], period=4096))["stacks"], [])
        (stack,) = self.json("leaks", self.profile(kept=[1 << 20, 1 << 20], freed=[8192, 0], period=4096))["stacks"]
        self.assertEqual(stack["place"], "demo.c:10")


class HeapsOfTwoFiles(FilesTest):
    EXACT = {"sampling_interval_bytes": 1, "orig_sampling_interval_bytes": 1}

    def heaps(self, name, **sizes):
        return self.file(name, trace_of(*((heap.replace("_", "."), {"main": (1, size, 0, 0)}, self.EXACT)
                                          for heap, size in sizes.items())))

    def test_the_largest_of_those_that_both_have_is_compared(self):
        a = self.heaps("a", com_example_arena=9000, libc_malloc=500, pool=300)
        b = self.heaps("b", libc_malloc=700, pool=8000)
        diff = self.json("diff", a, b)
        self.assertEqual([diff[side]["heap"] for side in "ab"], ["libc.malloc", "libc.malloc"])
        self.assertEqual(diff["live_bytes"]["change"], 200)
        self.assertEqual(self.json("diff", b, a)["a"]["heap"], "pool")

    def test_different_heaps_are_not_compared(self):
        a, b = self.heaps("a", com_example_arena=9000), self.heaps("b", libc_malloc=700, pool=30)
        result = self.run_tool("diff", "--fail-if", "live>+1%", a, b, code=4)
        self.assertIn("no heap of A (com.example.arena) has the name of one of B (libc.malloc, pool); record both with "
                      "--all-heaps, or name the same ones in --heaps", result.stderr)
        self.assertEqual(result.stdout, "")

    def test_files_that_name_no_heap_are_compared_with_any(self):
        a, b = self.heaps("a", com_example_arena=9000), self.file("b.folded", b"main;f 100\n")
        self.assertEqual(self.json("diff", a, b)["live_bytes"]["change"], -8900)
        self.assertEqual(self.json("diff", b, a)["live_bytes"]["change"], 8900)

    @unittest.skipIf(os.environ.get("SANITIZE"), "a sanitizer has memory of its own")
    def test_many_long_stacks_take_no_more_memory_than_their_file(self):
        dice = random.Random(1)
        names = [f"space::Class{i}::function_{i}(std::string const&, int, std::vector<int>)" for i in range(1000)]
        stacks = [";".join(dice.choices(names, k=100)) for _ in range(3000)]
        path = self.file("many.folded", "".join(f"{stack} 4096\n" for stack in stacks).encode())
        least = self.peak_kib("show", path)
        self.assertLess(self.peak_kib("leaks", path), 1.5 * least)
        self.assertLess(self.peak_kib("diff", path, path), 1.5 * least)

    def peak_kib(self, *arguments):
        process = subprocess.Popen([HEAP_PROFILE, *arguments], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 0)
        return usage.ru_maxrss


if __name__ == "__main__":
    unittest.main()
