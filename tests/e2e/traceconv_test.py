"""traceconv on traces that heap_profile has just recorded, and on damaged ones."""

import glob
import gzip
import os
import shutil
import subprocess
import tarfile
import tempfile
import unittest
import zlib

from google.protobuf import text_format

import pprof_pb2
import trace_pb2
from profile_run import HEAP_PROFILE

TRACES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "traces")
PYTHON = ["/usr/bin/python3", "-B", "-c", "import json, email; x = [str(i) * 3 for i in range(20000)]"]


def traceconv(*arguments, input=None, env=None):
    return subprocess.run([HEAP_PROFILE, "traceconv", *arguments], input=input, capture_output=True, timeout=120,
                          env={**os.environ, **(env or {})})


def load(path):
    """{stack of (function, file, line), innermost first: values} of a profile, and the profile."""
    profile = pprof_pb2.Profile()
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
        profile.ParseFromString(file.read())
    strings = profile.string_table
    functions = {f.id: (strings[f.name], strings[f.system_name], strings[f.filename]) for f in profile.function}
    mappings = {m.id: (strings[m.filename], strings[m.build_id], m.memory_start) for m in profile.mapping}
    locations = {l.id: (mappings[l.mapping_id], l.address, [(functions[e.function_id], e.line) for e in l.line])
                 for l in profile.location}
    samples = {}
    for sample in profile.sample:
        key = str([locations[id] for id in sample.location_id])
        samples.setdefault(key, []).append(tuple(sample.value))
    return {key: sorted(values) for key, values in samples.items()}, profile


class Traceconv(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp(prefix="traceconv_test_")
        cls.addClassCleanup(shutil.rmtree, cls.directory)
        cls.recorded = os.path.join(cls.directory, "recorded")
        subprocess.run([HEAP_PROFILE, "-q", "-i", "1", "-o", cls.recorded, "--", *PYTHON], check=True)
        cls.trace = os.path.join(cls.recorded, "raw-trace")

    def convert(self, trace, *arguments, env=None):
        """The files that `profile` writes."""
        directory = tempfile.mkdtemp(dir=self.directory)
        done = traceconv("profile", "--output-dir", directory, *arguments, trace, env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"Wrote profiles to " + directory.encode(), done.stderr)
        return sorted(glob.glob(directory + "/*"))

    def path(self, name, content):
        path = os.path.join(self.directory, name)
        with open(path, "wb") as file:
            file.write(content)
        return path

    def test_profiles_are_those_that_heap_profile_wrote_itself(self):
        own = glob.glob(self.recorded + "/heap_dump.*")
        converted = self.convert(self.trace)
        self.assertEqual(len(own), 1)
        self.assertEqual(len(converted), 1)
        self.assertRegex(os.path.basename(converted[0]), r"^heap_dump\.1\.\d+\.libc\.malloc\.pb$")
        expected, own_profile = load(own[0])
        found, profile = load(converted[0])
        self.assertGreater(len(expected), 500)
        self.assertEqual(found, expected)
        self.assertEqual(profile.period, own_profile.period)
        texts = [[p.string_table[c] for c in p.comment] for p in (profile, own_profile)]
        self.assertEqual(texts[0], texts[1])
        for p in (profile, own_profile):
            self.assertEqual(p.string_table[p.default_sample_type], "space")
            self.assertEqual(p.string_table[p.mapping[0].filename].rsplit("/")[-1][:7], "python3")
        self.assertLess(abs(profile.time_nanos - own_profile.time_nanos), 60e9)

    def test_every_location_has_a_mapping_and_files_have_build_ids(self):
        _, profile = load(self.convert(self.trace)[0])
        mappings = {m.id: m for m in profile.mapping}
        for location in profile.location:
            self.assertIn(location.mapping_id, mappings)
        libc = next(m for m in profile.mapping if profile.string_table[m.filename].endswith("libc.so.6"))
        self.assertRegex(profile.string_table[libc.build_id], "^[0-9a-f]{40}$")

    def test_go_pprof_reads_them_and_does_not_show_malloc_alone(self):
        go = shutil.which("go")
        if go is None:
            self.skipTest("go is not installed")
        text = subprocess.run([go, "tool", "pprof", "-top", "-nodecount=5", self.convert(self.trace)[0]], check=True,
                              capture_output=True, text=True, env={**os.environ, "HOME": self.directory}).stdout
        self.assertIn("Type: space", text)
        self.assertIn("Py", text)
        self.assertNotIn(" malloc\n", text)

    def test_pid_and_timestamps_select(self):
        pid = os.path.basename(self.convert(self.trace)[0]).split(".")[2]
        self.assertEqual(len(self.convert(self.trace, "--pid", pid)), 1)
        done = traceconv("profile", "--pid", "1", self.trace)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"has no dump of --pid 1; it has dumps of {pid}".encode(), done.stderr)
        self.assertEqual(traceconv("profile", "--timestamps", "x", self.trace).returncode, 2)

    def test_text_is_the_trace(self):
        text = traceconv("text", self.trace)
        self.assertEqual(text.returncode, 0, text.stderr)
        from google.protobuf import text_format
        read = text_format.Parse(text.stdout.decode(), trace_pb2.Trace())
        trace = trace_pb2.Trace()
        with open(self.trace, "rb") as file:
            trace.ParseFromString(file.read())
        self.assertEqual(read, trace)

    def stripped(self):
        """The trace without its symbols."""
        trace = trace_pb2.Trace()
        with open(self.trace, "rb") as file:
            trace.ParseFromString(file.read())
        packets = [p for p in trace.packet if p.WhichOneof("data") != "module_symbols"]
        for packet in packets:
            for frame in packet.interned_data.frames:
                if frame.mapping_id != 0:  # the functions that were called are no code
                    frame.function_name_id = 0
        return trace_pb2.Trace(packet=packets).SerializeToString()

    def test_text_becomes_the_trace_again_and_compressed_packets_plain_ones(self):
        text = traceconv("text", self.trace).stdout
        back = traceconv("binary", "-", "-", input=text)
        self.assertEqual(back.returncode, 0, back.stderr)
        self.assertEqual(traceconv("text", input=back.stdout).stdout, text)
        compressed = trace_pb2.Trace()
        compressed.packet.add().compressed_packets = zlib.compress(back.stdout)
        plain = traceconv("decompress_packets", "-", "-", input=compressed.SerializeToString())
        self.assertEqual((plain.returncode, plain.stderr), (0, b""))
        self.assertEqual(traceconv("text", input=plain.stdout).stdout, text)
        compressed.packet[0].compressed_packets = zlib.compress(back.stdout)[:-50]
        cut = traceconv("decompress_packets", "-", "-", input=compressed.SerializeToString())
        self.assertIn(b"damaged", cut.stderr)
        bad = traceconv("binary", "-", "-", input=b"packet { timestamp: x }")
        self.assertEqual(bad.returncode, 2)
        self.assertIn(b"cannot read trace text", bad.stderr)

    def test_symbols_can_be_made_later_and_appended(self):
        stripped = self.path("stripped", self.stripped())
        profile = load(self.convert(stripped)[0])[1]
        self.assertLessEqual({profile.string_table[f.name] for f in profile.function}, {"malloc", "calloc", "realloc"})
        symbols = traceconv("symbolize", stripped)
        self.assertEqual(symbols.returncode, 0, symbols.stderr)
        self.assertGreater(len(symbols.stdout), 1000)
        whole = self.path("symbolized", self.stripped() + symbols.stdout)
        expected, _ = load(glob.glob(self.recorded + "/heap_dump.*")[0])
        self.assertEqual(load(self.convert(whole)[0])[0], expected)
        first = self.path("symbols-first", symbols.stdout + self.stripped())
        self.assertEqual(load(self.convert(first)[0])[0], expected)
        in_process = self.convert(stripped, env={"PERFETTO_BINARY_PATH": "/nonexistent"})
        self.assertEqual(load(in_process[0])[0], expected)

    def test_compressed_piped_and_bundled_traces_are_the_same(self):
        with open(self.trace, "rb") as file:
            content = file.read()
        expected, _ = load(self.convert(self.trace)[0])
        self.assertEqual(load(self.convert(self.path("gz", gzip.compress(content)))[0])[0], expected)
        directory = tempfile.mkdtemp(dir=self.directory)
        piped = traceconv("profile", "--output-dir", directory, input=content)
        self.assertEqual(piped.returncode, 0, piped.stderr)
        self.assertEqual(load(glob.glob(directory + "/*")[0])[0], expected)
        stripped = self.path("for-bundle", self.stripped())
        bundle = os.path.join(self.directory, "bundle.tar")
        done = traceconv("bundle", stripped, bundle)
        self.assertEqual(done.returncode, 0, done.stderr)
        with tarfile.open(bundle) as archive:
            self.assertEqual(archive.getnames(), ["trace.perfetto", "symbols.pb"])
        self.assertEqual(load(self.convert(bundle)[0])[0], expected)

    def test_mapping_files_become_packets(self):
        mapping = self.path("mapping.txt", b"com.example.Store -> a.b:\n    void read() -> c\nnonsense\n")
        done = traceconv("deobfuscate", self.trace, env={"PERFETTO_PROGUARD_MAP": "com.example=" + mapping})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"1 line left out, the first is line 3", done.stderr)
        packet = trace_pb2.Trace.FromString(done.stdout).packet[0].deobfuscation_mapping
        self.assertEqual(packet.package_name, "com.example")
        self.assertEqual(packet.obfuscated_classes[0].obfuscated_methods[0].deobfuscated_name, "com.example.Store.read")
        unset = traceconv("deobfuscate", self.trace, env={"PERFETTO_PROGUARD_MAP": ""})
        self.assertEqual(unset.returncode, 2)
        self.assertIn(b"set PERFETTO_PROGUARD_MAP", unset.stderr)

    def test_bad_input_says_what_is_wrong(self):
        with open(self.trace, "rb") as file:
            content = file.read()
        for name, bad, message in [("empty", b"", b"it is empty"), ("text", b"hello world", b"holds no trace packet")]:
            done = traceconv("profile", self.path(name, bad))
            self.assertEqual(done.returncode, 1)
            self.assertIn(message, done.stderr)
        with open(glob.glob(self.recorded + "/heap_dump.*")[0], "rb") as file:
            pprof = file.read()
        for name, other, words in (("p.pb.gz", pprof, b"a pprof profile"), ("p.pb", gzip.decompress(pprof)[:2000], b"a pprof profile"),
                                   ("p.folded", b"main;f 10\n", b"folded stacks"), ("p.heaptrack", b"v 10400 3\n", b"a heaptrack recording")):
            path = self.path(name, other)
            done = traceconv("profile", path)
            self.assertEqual((done.returncode, done.stderr), (2, b"heap_profile traceconv: cannot read trace " + path.encode() + b": it is " + words +
                                                              b" and no trace; heap_profile show, export and report read it\n"))
        cut = traceconv("text", self.path("cut", content[:-10]))
        self.assertEqual(cut.returncode, 0, cut.stderr)
        self.assertIn(b"damaged", cut.stderr)
        self.assertEqual(traceconv("nonsense", self.trace).returncode, 2)
        self.assertEqual(traceconv("--help").returncode, 0)

    def test_the_name_of_the_program_is_a_verb(self):
        link = os.path.join(self.directory, "traceconv")
        os.symlink(HEAP_PROFILE, link)
        done = subprocess.run([link, "text", self.trace], capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.startswith(b"packet {\n"))


class SymbolsFile(unittest.TestCase):
    def test_heap_profile_writes_it_when_told_where_symbols_are(self):
        with tempfile.TemporaryDirectory() as directory:
            subprocess.run([HEAP_PROFILE, "-q", "-i", "1", "-o", directory + "/x", "--", *PYTHON], check=True,
                           env={**os.environ, "PERFETTO_BINARY_PATH": "/usr/lib/debug"})
            with open(directory + "/x/symbols", "rb") as file:
                packets = trace_pb2.Trace.FromString(file.read()).packet
            self.assertTrue(packets)
            self.assertTrue(all(p.WhichOneof("data") == "module_symbols" for p in packets))


class JavaHeaps(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="traceconv_test_")
        self.addCleanup(shutil.rmtree, self.directory)

    def trace(self, *names):
        """A file with the traces of tests/data/traces, one behind the other."""
        path = os.path.join(self.directory, "trace")
        with open(path, "wb") as file:
            for name in names:
                with open(os.path.join(TRACES, name + ".textproto")) as text:
                    file.write(text_format.Parse(text.read(), trace_pb2.Trace()).SerializeToString())
        return path

    def test_a_heap_graph_becomes_a_profile_that_go_pprof_reads(self):
        done = traceconv("profile", "--output-dir", self.directory + "/out", self.trace("heap_graph"))
        self.assertEqual(done.returncode, 0, done.stderr)
        (path,) = glob.glob(self.directory + "/out/*")
        self.assertEqual(os.path.basename(path), "java_heap_dump.1.12.pb")
        _, profile = load(path)
        self.assertEqual([sum(s.value[i] for s in profile.sample) for i in range(2)], [5, 1096])
        if shutil.which("go"):
            text = subprocess.run(["go", "tool", "pprof", "-top", path], check=True, capture_output=True, text=True,
                                  env={**os.environ, "HOME": self.directory}).stdout
            self.assertIn("Type: space", text)
            self.assertRegex(text, r"1000B .* byte\[\]")

    def test_a_heap_without_roots_has_an_empty_profile_and_a_message(self):
        path = os.path.join(self.directory, "trace")
        heap = "packet { timestamp: 5 trusted_packet_sequence_id: 1 heap_graph { pid: 7 %s types { id: 1 class_name: 'A' } } }"
        for objects, code, message in [("objects { id: 1 type_id: 1 self_size: 8 }", 0, b"has no object that a root reaches"),
                                       ("", 1, b"its Java heaps have no objects")]:
            with open(path, "wb") as file:
                file.write(text_format.Parse(heap % objects, trace_pb2.Trace()).SerializeToString())
            done = traceconv("profile", "--java-heap", "--output-dir", f"{self.directory}/{code}", path)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(message, done.stderr)
        (made,) = glob.glob(self.directory + "/0/*")
        self.assertEqual(len(load(made)[1].sample), 0)

    def test_a_trace_with_both_kinds_needs_to_be_told_which(self):
        both = self.trace("heap_graph", "two_dumps")
        undecided = traceconv("profile", "--output-dir", self.directory + "/none", both)
        self.assertEqual(undecided.returncode, 2)
        self.assertIn(b"say --alloc or --java-heap", undecided.stderr)
        self.assertFalse(os.path.exists(self.directory + "/none"))
        for mode, kind, count in [("profile --alloc", "heap_dump", 2), ("profile --java-heap", "java_heap_dump", 1),
                                  ("java_heap_profile", "java_heap_dump", 1)]:
            directory = f"{self.directory}/{mode}"
            done = traceconv(*mode.split(), "--output-dir", directory, both)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual([name.split(".")[0] for name in os.listdir(directory)], [kind] * count)
        self.assertEqual(traceconv("profile", "--alloc", "--java-heap", both).returncode, 2)
        perf = traceconv("profile", "--perf", both)
        self.assertEqual(perf.returncode, 2)
        self.assertIn(b"only heaps are read here", perf.stderr)
        none = traceconv("profile", "--java-heap", self.trace("two_dumps"))
        self.assertEqual(none.returncode, 1)
        self.assertIn(b"the trace has no Java heap", none.stderr)


class ATraceWithoutSamples(unittest.TestCase):
    def test_a_trace_without_samples_says_so(self):
        with tempfile.TemporaryDirectory() as directory:
            subprocess.run([HEAP_PROFILE, "-q", "-i", "100000000000", "-o", directory + "/x", "--", "/bin/true"],
                           check=True)
            done = traceconv("profile", directory + "/x/raw-trace")
            self.assertEqual(done.returncode, 1)
            self.assertIn(b"no dump of the trace has a sample", done.stderr)


if __name__ == "__main__":
    unittest.main()
