"""heap_profile hprof and hprof-conv on made dumps, on Android's own converter's results, and on a live Java VM."""

import csv
import gzip
import io
import json
import os
import pathlib
import pty
import re
import select
import shlex
import signal
import struct
import subprocess
import unittest

import trace_pb2
from hprof_dump import Dump, head_and_tail, phone
from java_machine import WithMachine, jcmd, machines_histogram
from profile_run import HEAP_PROFILE
from with_directory import WithDirectory

COMPAT = os.environ["COMPAT"]
DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs")
ANDROIDS = "/usr/lib/android-sdk/platform-tools/hprof-conv"


def hprof(*arguments, **kwargs):
    return subprocess.run([HEAP_PROFILE, "hprof", *arguments], capture_output=True, text=True, timeout=120, **kwargs)


def murmur(data):
    """MurmurHash64A, as Perfetto names the content of an array."""
    factor, whole = 0xC6A4A7935BD1E995, 2**64 - 1
    result = 0xE17A1465 ^ len(data) * factor & whole
    for at in range(0, len(data), 8):
        word = int.from_bytes(data[at:at + 8], "little")
        if at + 8 <= len(data):
            word = word * factor & whole
            word = (word ^ word >> 47) * factor & whole
        result = (result ^ word) * factor & whole
    result = (result ^ result >> 47) * factor & whole
    result ^= result >> 47
    return result - 2**64 if result >= 2**63 else result


class HprofTest(WithDirectory):
    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def histogram(self, *arguments):
        done = hprof("histogram", "--json", "--top", "0", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)


class Conversion(HprofTest):
    def convert(self, dump, *flags, tool="hprof-conv"):
        """Exit code, output (None: there is no file), message."""
        source = self.write("in.hprof", dump)
        if os.path.exists(self.path("out")):
            os.unlink(self.path("out"))
        program = tool if os.path.isabs(tool) else os.path.join(COMPAT, tool)
        done = subprocess.run([program, *flags, source, self.path("out")], capture_output=True, text=True, timeout=60)
        return done.returncode, self.read("out") if os.path.exists(self.path("out")) else None, done.stderr

    @unittest.skipUnless(os.path.exists(ANDROIDS), "Debian's hprof-conv is not installed")
    def test_where_androids_own_is_right_the_bytes_are_the_same(self):
        for flags in ([], ["-z"]):
            for kinds in ((0x5A, 0x49, 0x41, 0), (0x41,), (0x5A,), (0x5A, 7, 0x41)):
                with self.subTest(flags=flags, kinds=kinds):
                    dump = phone(kinds=kinds)
                    code, want, _ = self.convert(dump, *flags, tool=ANDROIDS)
                    self.assertEqual(code, 0)
                    code, made, message = self.convert(dump, *flags)
                    self.assertEqual(code, 0, message)
                    self.assertEqual(made, want)

    def test_ids_of_eight_bytes_and_arrays_without_data(self):
        for id_bytes in (4, 8):
            code, made, message = self.convert(phone(id_bytes, no_data=True))
            self.assertEqual(code, 0, message)
            self.assertTrue(made.startswith(b"JAVA PROFILE 1.0.2\0"))
            self.assertEqual(self.convert(made)[1], made, "an ordinary dump is copied")
            rows = {row["class"]: row["objects"] for row in self.histogram(self.path("out"))["classes"]}
            self.assertEqual(rows["int[]"], 4)
            self.assertEqual(rows["com.example.Node"], 9)

    def test_what_is_cut_leaves_no_file_behind(self):
        dump = phone()
        segment = dump.index(b"\x1c\0\0\0\0\0")
        for size in (0, 10, 31 + 5, segment + 4, segment + 50, len(dump) - 9, len(dump) - 1):
            with self.subTest(size=size):
                code, made, message = self.convert(dump[:size])
                self.assertEqual((code, made), (255, None))
                self.assertIn("hprof-conv: cannot ", message)
                if size > 40:
                    self.assertRegex(message, "; heap_profile hprof histogram .* reads what is there")
                self.assertEqual(os.listdir(self.directory), ["in.hprof"])

    def test_standard_streams_and_gzip(self):
        want = self.convert(phone())[1]
        for data in (phone(), gzip.compress(phone())):
            done = subprocess.run([os.path.join(COMPAT, "hprof-conv"), "-", "-"], input=data, capture_output=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout, want)

    def test_wrong_command_lines(self):
        path = self.write("a", phone())
        for arguments in ([], ["a"], ["a", "b", "c"], ["-x", "a", "b"], [path, path]):
            done = subprocess.run([os.path.join(COMPAT, "hprof-conv"), *arguments], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(self.read("a"), phone())


class Traces(HprofTest):
    def test_a_dump_becomes_a_trace_with_the_same_objects(self):
        path, trace = self.write("a.hprof", phone()), self.path("a.trace")
        done = hprof("trace", path, trace)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        question = ("SELECT c.name, count(*) AS objects, sum(o.self_size) AS size, sum(o.reachable) AS reachable FROM heap_graph_object o "
                    "JOIN heap_graph_class c ON o.type_id = c.id GROUP BY 1 ORDER BY 1")
        of_dump, of_trace = (json.loads(subprocess.run([HEAP_PROFILE, "query", "--json", file, question], capture_output=True, text=True,
                                                       check=True).stdout) for file in (path, trace))
        self.assertEqual(of_trace, of_dump)
        self.assertGreater(len(of_trace), 2)
        packets = trace_pb2.Trace.FromString(pathlib.Path(trace).read_bytes()).packet
        self.assertEqual([list(process.cmdline) for packet in packets for process in packet.process_tree.processes], [["a.hprof"]])
        self.assertTrue(any(packet.HasField("heap_graph") for packet in packets))

    def test_what_cannot_be_made_leaves_nothing(self):
        path = self.write("a.hprof", phone())
        for words, cause in (([path], "cannot make a trace: one input and one output are needed"), ([path, path], "it is the input, too; name another output"),
                             ([self.path("none"), self.path("out")], "No such file")):
            done = hprof("trace", *words)
            self.assertNotEqual(done.returncode, 0, words)
            self.assertIn(cause, done.stderr)
        self.assertFalse(os.path.exists(self.path("out")))


class Merging(HprofTest):
    def setUp(self):
        super().setUp()
        self.whole = phone()
        head, tail = head_and_tail(self.whole)
        self.head = self.write("heap-dump-tm1-pid2.hprof-head", head)
        self.tail = self.write("heap-dump-tm1-pid2.hprof", tail)

    def merged(self, *arguments):
        done = hprof("merge", *arguments, self.path("out"))
        return done, self.read("out") if os.path.exists(self.path("out")) else None

    def test_in_any_order_and_by_itself(self):
        for arguments in ([self.head, self.tail], [self.tail, self.head], [self.tail], [self.head]):
            done, made = self.merged(*arguments)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(made, self.whole)
            self.assertEqual("the head; the head is put first" in done.stderr, arguments[0] == self.tail)
            os.unlink(self.path("out"))

    def test_a_pair_is_examined_without_merging(self):
        want = self.histogram(self.write("whole.hprof", self.whole))["classes"]
        for half in (self.head, self.tail):
            self.assertEqual(self.histogram(half)["classes"], want)

    def test_what_is_no_pair_is_refused(self):
        other = Dump().string(1, "x").load_class(77, "Other").bytes
        nearly = Dump().string(1, "x").load_class(20, "Other").bytes  # an id of the other dump, by chance
        for first, second, cause in [
                (self.tail, self.tail, "both are tails"),
                (self.head, self.head, "both begin as a head"),
                (self.write("merged", self.whole), self.tail, "merged or whole"),
                (self.head, self.write("text", b"hello"), "neither a head nor a tail"),
                (self.write("other", other), self.tail, "12 of the 12 classes .* of different dumps"),
                (self.write("nearly", nearly), self.tail, "8 of the 12 classes .* of different dumps")]:
            done, made = self.merged(first, second)
            self.assertEqual((done.returncode, made), (2, None), done.stderr)
            self.assertRegex(done.stderr, f"cannot merge {first} and {second}: .*{cause}")

    def test_names_of_different_processes_are_noticed(self):
        moved = self.path("heap-dump-tm1-pid3.hprof-head")
        os.rename(self.head, moved)
        done, made = self.merged(moved, self.tail)
        self.assertEqual(made, self.whole)
        self.assertIn("the names say pid 3 and 2", done.stderr)


class Examination(HprofTest):
    def test_a_cut_dump_is_shown_up_to_there(self):
        dump = phone()
        path = self.write("cut.hprof", dump[:-40])
        done = hprof("histogram", "--json", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"it is cut at byte {len(dump) - 40}", done.stderr)
        self.assertIn("it is cut at byte", " ".join(json.loads(done.stdout)["notes"]))
        strict = hprof("histogram", "--strict", path)
        self.assertEqual(strict.returncode, 1)
        self.assertIn(f"cannot show all of {path}: it is damaged", strict.stderr)
        strict = hprof("trace", "--strict", path, self.path("strict.trace"))
        self.assertEqual((strict.returncode, os.path.exists(self.path("strict.trace"))), (1, False))
        self.assertIn(f"cannot write all of {path} as a trace: it is damaged", strict.stderr)

    def test_where_the_roots_are_cut_off_nothing_is_said_to_be_garbage(self):
        """HotSpot writes them behind the objects."""
        dump = Dump(version="1.0.2").string(2, "next").load_class(20, "Node")
        dump.segment(dump.class_dump(20, 0, [2]), dump.instance(100, 20, 101), dump.instance(101, 20, 0), dump.root(0xFF, 100)).end()
        cut = self.write("cut.hprof", dump.bytes[:-11])
        for verb, absent in (("leaks", "Nothing has piled up"), ("path", "garbage"), ("dominators", "Node"), ("unreachable", None)):
            done = hprof(verb, cut, *(["Node"] if verb == "path" else []))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("no root could be read: who holds what cannot be told, as if all were garbage; histogram, object, find and "
                          "strings need no roots", done.stderr)
            if absent is not None:
                self.assertNotIn(absent, done.stdout)
        self.assertIn("Node is not held by any root that could be read", hprof("path", cut, "Node").stdout)
        self.assertNotIn("no root", hprof("histogram", cut).stderr)
        self.assertNotIn("no root", hprof("leaks", self.write("whole.hprof", dump.bytes)).stderr)

    def test_compressed_dumps_and_pipes(self):
        want = self.histogram(self.write("a.hprof", phone()))["classes"]
        half = len(phone()) // 2
        for data in (gzip.compress(phone()), gzip.compress(phone()[:half]) + gzip.compress(phone()[half:])):
            self.assertEqual(self.histogram(self.write("a.hprof.gz", data))["classes"], want)
        with open(self.path("a.hprof"), "rb") as file:
            done = subprocess.run([HEAP_PROFILE, "hprof", "histogram", "--json", "--top", "0", "-"], stdin=file,
                                  capture_output=True, timeout=60)
        self.assertEqual(json.loads(done.stdout)["classes"], want)
        cut = hprof("histogram", self.write("cut.gz", gzip.compress(phone())[:-20]))
        self.assertIn("it ends in the middle of a compressed stream", cut.stderr)

    def test_rows_with_retained_sizes_are_those_of_the_histogram(self):
        """Two loaders have loaded a class, one object of it holds one of the other; there is garbage, and no java.lang.Class."""
        dump = Dump(version="1.0.2", id_bytes=8).string(2, "next")
        dump.load_class(20, "Node").load_class(30, "Node")
        dump.segment(dump.root(0x05, 20), dump.root(0x05, 30), dump.root(0xFF, 100), dump.class_dump(20, 0, [2]),
                     dump.class_dump(30, 0, [2]), dump.instance(100, 20, 110), dump.instance(110, 30, 0),
                     dump.instance(120, 30, 0), dump.numbers(130, b"garbage"))
        path = self.write("a.hprof", dump.end().bytes)
        plain = self.histogram(path)
        retained = self.histogram("--retained", path)
        held = {row["class"]: row.pop("retained") for row in retained["classes"]}
        self.assertCountEqual(retained["classes"], plain["classes"])
        self.assertEqual({row["class"]: row["objects"] for row in plain["classes"]},
                         {"Node": 3, "java.lang.Class": 2, "byte[]": 1})
        self.assertEqual((retained["objects"], retained["bytes"]), (plain["objects"], plain["bytes"]))
        node = next(row["bytes"] for row in plain["classes"] if row["class"] == "Node") // 3
        self.assertEqual(held["Node"], 2 * node)
        self.assertEqual(held["byte[]"], 0)

    def test_two_dumps_are_compared(self):
        older = self.write("older", phone(kinds=(0x41,)))
        newer = self.write("newer", phone(kinds=(0x41, 0x5A)))
        for flags in ([], ["--retained"]):
            done = hprof("compare", "--json", "--top", "0", *flags, older, newer)
            self.assertEqual(done.returncode, 0, done.stderr)
            compared = json.loads(done.stdout)
            before, now = ({row["class"]: row for row in self.histogram(*flags, path)["classes"]} for path in (older, newer))
            columns = ("objects", "bytes", "retained") if flags else ("objects", "bytes")
            zeros = dict.fromkeys(columns, 0)
            want = [(name, {c: now.get(name, zeros)[c] for c in columns}, {c: before.get(name, zeros)[c] for c in columns})
                    for name in before.keys() | now.keys()]
            self.assertCountEqual([(row["class"], {c: row[c] for c in columns}, row["before"]) for row in compared["classes"]],
                                  [row for row in want if row[1] != row[2]])
            self.assertEqual((compared["file"], compared["before"]["file"]), (newer, older))
            changes = [row[columns[-1]] - row["before"][columns[-1]] for row in compared["classes"]]
            self.assertEqual(changes, sorted(changes, reverse=True))
        text = hprof("compare", newer, older).stdout
        self.assertRegex(text, r"(?m)^ +\d+ +-\d+ +\d+ +-\d+  com\.example\.Node$")
        self.assertIn("No class has more or less", hprof("compare", older, older).stdout)

    def test_dominators_and_paths(self):
        path = self.write("a.hprof", phone(kinds=(0x41,)))
        done = hprof("dominators", "--json", path, "com.example.Node[]")
        self.assertEqual(done.returncode, 0, done.stderr)
        done = hprof("path", "--json", path, "0x65")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual([(step["address"], step["reference"]) for step in found["path"]], [("0x64", ""), ("0x65", ".next")])
        self.assertIn(found["root"], ("ROOT_JNI_LOCAL", "ROOT_JAVA_FRAME"))
        garbage = hprof("path", path, "0x384")
        self.assertIn("0x384 is not held by any root", garbage.stdout)

    def test_what_nothing_holds_is_counted_by_class(self):
        dump = Dump(version="1.0.2", id_bytes=8).string(2, "next").load_class(20, "Node")
        dump.segment(dump.root(0x05, 20), dump.root(0xFF, 100), dump.class_dump(20, 0, [2]), dump.instance(100, 20, 110),
                     dump.instance(110, 20, 0), dump.instance(120, 20, 130), dump.instance(130, 20, 110), dump.numbers(140, b"garbage"))
        path = self.write("a.hprof", dump.end().bytes)
        done = hprof("unreachable", "--json", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual({row["class"]: row["objects"] for row in found["classes"]}, {"Node": 2, "byte[]": 1})
        self.assertEqual(found["objects"], 3)
        self.assertRegex(hprof("unreachable", path).stdout, r"(?m)^ +2 +\d+  Node$")

    def test_how_full_arrays_are(self):
        dump = Dump(version="1.0.2", id_bytes=8).string(2, "table")
        for number, name in ((20, "Map"), (30, "[LNode;")):
            dump.load_class(number, name)
        dump.segment(dump.root(0x05, 20), *(dump.root(0xFF, number) for number in (100, 110, 230)), dump.class_dump(20, 0, [2]),
                     dump.class_dump(30), dump.instance(100, 20, 200), dump.instance(110, 20, 210),
                     dump.objects(200, 30, 100, 0, 0, 0), dump.objects(210, 30, 0, 0), dump.objects(220, 30, 0, 0),
                     dump.objects(230, 30, 100))
        path = self.write("a.hprof", dump.end().bytes)
        done = hprof("collections", "--json", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual([(row["holder"], row["class"], row["arrays"], row["unused_arrays"], row["places"], row["empty_places"], row["wasted"])
                          for row in found["collections"]],
                         [("Map", "Node[]", 2, 1, 6, 5, 20), ("several or none", "Node[]", 1, 0, 1, 0, 0)])
        self.assertEqual((found["arrays"], found["wasted"]), (3, 20))
        self.assertRegex(hprof("collections", path).stdout, r"(?m)^ +20 +17% +2 +1  Node\[\], Map$")

    def test_class_loaders(self):
        dump = Dump(version="1.0.2", id_bytes=8).string(2, "next").string(3, "STATE")
        for number, name in ((20, "Loader"), (30, "Node"), (40, "Other")):
            dump.load_class(number, name)
        dump.segment(dump.root(0x05, 20), dump.root(0xFF, 100), dump.class_dump(20), dump.class_dump(30, 0, [2], [(3, 200)], loader=100),
                     dump.class_dump(40, 0, loader=999), dump.instance(100, 20, 30), dump.instance(110, 30, 0), dump.instance(120, 30, 0),
                     dump.numbers(200, b"x" * 1000))
        path = self.write("a.hprof", dump.end().bytes)
        done = hprof("loaders", "--json", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        loaders = {row["name"]: row for row in json.loads(done.stdout)["loaders"]}
        self.assertEqual({name: (row["classes"], row["objects"]) for name, row in loaders.items()},
                         {"Loader 0x64": (1, 2), "the virtual machine's own": (1, 1), "0x3e7, which the dump does not have": (1, 0)})
        text = hprof("loaders", path).stdout
        self.assertRegex(text, r"(?m)^a?.*: 3 class loaders$")
        self.assertRegex(text, r"(?m)^ +\d+ +1 +2 +\d+  Loader 0x64$")
        self.assertRegex(text, r"(?m)^ +- +1 +1 +\d+  the virtual machine's own$")
        rows, _ = query(path, "SELECT c.name, o.address FROM heap_graph_class c JOIN heap_graph_object o ON o.id = c.classloader_id")
        self.assertEqual(rows, [{"name": "Node", "address": 100}])

    def test_ways_to_all_objects_of_a_class_are_merged(self):
        dump = Dump(version="1.0.2", id_bytes=8).string(2, "next").string(3, "CACHE")
        for number, name in ((20, "Holder"), (30, "Node")):
            dump.load_class(number, name)
        nodes = [dump.instance(number, 30, number + 1 if number < 109 else 0) for number in range(100, 110)]
        dump.segment(dump.root(0x05, 20), dump.root(0xFF, 200), dump.class_dump(20, 0, [], [(3, 100)]), dump.class_dump(30, 0, [2]), *nodes,
                     dump.instance(200, 30, 0), dump.instance(300, 30, 0))
        path = self.write("a.hprof", dump.end().bytes)
        found = json.loads(hprof("paths", "--json", path, "Node").stdout)
        self.assertEqual([(way["depth"], way["name"], way["objects"]) for way in found["ways"]],
                         [(0, "class Holder", 10), (1, "Node", 10), (0, "Node", 1)])
        self.assertEqual((found["all_objects"], found["held_objects"], found["all_ways"]), (12, 11, 3))
        text = hprof("paths", "--top", "2", path, "Node").stdout
        self.assertRegex(text, r"12 objects of Node, of which 11 are held\n\n +objects +bytes  way, from the root\n"
                               r" +10 +\d+  class Holder\n +10 +\d+    Node\n1 more; --top 0 shows all\n$")
        self.assertIn("cannot find Nodes in the dump: no object has this class", hprof("paths", path, "Nodes").stderr)

    def test_ways_beyond_a_million_are_said_to_be_put_together(self):
        """Each array holds the one behind it; every one has a class of its own, so that there are as many different ways."""
        count = 1_050_000
        dump = Dump(version="1.0.2", id_bytes=4)
        first, size = 1 << 24, 8
        arrays = b"".join(b"\x22" + struct.pack(">IIIII", first + size * i, 0, 1, i + 1, first + size * (i + 1)) for i in range(count))
        dump.load_class(20, "Node")
        dump.segment(dump.root(0xFF, first), dump.class_dump(20), arrays, dump.instance(first + size * count, 20)).end()
        path = self.write("a.hprof", dump.bytes)
        found = json.loads(hprof("paths", "--json", "--top", "1", path, "Node").stdout)
        self.assertEqual((found["all_ways"], found["is_whole"]), (2**20, False))
        self.assertIn("there are more than 1048576 different ways: what is beyond counts for the last step of them that is listed",
                      found["notes"])
        self.assertIn("there are more than 1048576 different ways", hprof("paths", "--top", "1", path, "Node").stderr)

    def test_a_class_itself_can_be_named(self):
        path = self.write("a.hprof", phone(kinds=(0x41,)))
        for name in ("class com.example.Node", "java.lang.Class<com.example.Node>"):
            found = json.loads(hprof("object", "--json", path, name).stdout)
            self.assertEqual((found["object"]["class"], found["object"]["address"]), ("class com.example.Node", "0x14"))
            self.assertEqual([value["name"] for value in found["values"]], ["com.example.Node.CACHE"])
            found = json.loads(hprof("path", "--json", path, name).stdout)
            self.assertEqual([step["address"] for step in found["path"]], ["0x14"])

    def test_wrong_command_lines(self):
        path = self.write("a.hprof", phone())
        for arguments, code, cause in [
                (["histogram"], 2, "no file is named"), (["compare", path, path, path], 2, "cannot compare: two files are needed, that of the older dump first, or one with several dumps"),
                (["compare", path], 2, f"cannot compare dump 1 of {path} with itself: name another file, or two of its dumps with --before N and --dump N"),
                (["compare", "-"], 2, "cannot compare two dumps of -: what comes from there is read once; name a file"),
                (["compare", "/dev/null"], 2, "cannot compare two dumps of /dev/null: "),
                (["compare", path, path, "--dump", "2"], 2, "it has 1"), (["compare", "--before", "2", path], 2, "it has 1"),
                (["trace", "--before", "1", path, self.path("t")], 2, "cannot use --before with trace"), (["histogram", "--before", "1", path], 2, "cannot use --before with histogram: only compare has an older dump; --dump N chooses one"), (["compare", self.path("none"), path], 1, "No such"),
                (["leaks", path, "x"], 2, "of no single object"), (["path", path], 2, "one object is needed"), (["paths", path], 2, "one class is needed"),
                (["shrink", path], 2, "there is no such verb"), (["histogram", "--memory-budget", "0", path], 2,
                 "cannot use --memory-budget 0: it must be a number of bytes from 1 to 1 TiB"),
                (["path", path, "class Missing"], 1, "no object has this address or class"), (["histogram", "--fast", path], 2, "none of this name"),
                (["histogram", "--top", "x", path], 2, "must be a whole number"), (["histogram", "--dump", "2", path], 2, f"cannot examine dump 2 of {path}: it has 1"),
                (["histogram", self.write("none.hprof", Dump().string(1, "x").bytes)], 1, "it has no heap dump"),
                (["histogram", self.path("none")], 1, "No such file"), (["histogram", self.directory], 1, "Is a directory"),
                (["path", path, "Missing"], 1, "no object has this address or class"),
                (["histogram", self.write("text", b"hello")], 1, "so it is no hprof dump"),
                (["histogram", self.write("empty", b"")], 1, "so it is no hprof dump")]:
            with self.subTest(arguments):
                done = hprof(*arguments)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(cause, done.stderr)
                self.assertIn("heap_profile hprof: cannot ", done.stderr)
                self.assertEqual(done.stdout, "")

    def test_every_command_of_the_documentation_works(self):
        with open(os.path.join(DOCS, "hprof.md")) as file:
            blocks = re.findall(r"```\n(.*?)```", file.read(), re.DOTALL)
        self.write("app.hprof", phone(kinds=(0x41,)))
        self.write("before.hprof", phone(kinds=(0x41,)))
        self.write("phone.hprof", phone())
        both = Dump(version="1.0.2").load_class(20, "Node")
        for data in (b"before", b"app"):
            both.segment(both.root(0x05, 20), both.class_dump(20), both.numbers(100, data)).end()
        self.write("both.hprof", both.bytes)
        head, tail = head_and_tail(phone())
        self.write("heap-dump-tm1-pid2.hprof-head", head)
        self.write("heap-dump-tm1-pid2.hprof", tail)
        commands = [line for block in blocks for line in block.splitlines()
                    if line.startswith(("heap_profile hprof ", "heap_profile query ", "heap_profile report ", "hprof-conv "))]
        self.assertGreater(len(commands), 8)
        for command in commands:
            name, *arguments = shlex.split(command, comments=True)
            done = subprocess.run([os.path.join(COMPAT, name), *arguments], cwd=self.directory, capture_output=True, text=True,
                                  timeout=60)
            self.assertEqual(done.returncode, 0, command + "\n" + done.stderr)


def query(path, sql):
    done = subprocess.run([HEAP_PROFILE, "query", "--json", path, sql], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


OF_CLASSES = ("SELECT iif(c.name LIKE 'java.lang.Class<%', 'java.lang.Class', c.name) AS class, count(*) AS objects, "
              "sum(self_size) AS bytes FROM heap_graph_object o JOIN heap_graph_class c ON c.id = type_id GROUP BY 1")
VALUES = """
SELECT c.name AS class, p.field_name, p.field_type, coalesce(int_value, long_value, float_value, double_value) AS value
FROM heap_graph_object o JOIN heap_graph_class c ON c.id = o.type_id
JOIN heap_graph_object_data d ON d.id = o.object_data_id JOIN heap_graph_primitive p USING (field_set_id)
"""


class InflatedCopies(HprofTest):
    """What compressed dumps inflate to is in nameless files."""

    COPY = 20_000_000

    def test_they_do_not_stay_in_memory(self):
        dump = Dump(version="1.0.2").load_class(20, "Node")
        dump.segment(dump.root(0x05, 20), dump.class_dump(20), dump.numbers(100, os.urandom(self.COPY))).end()
        paths = [self.write(f"{i}.hprof.gz", gzip.compress(dump.bytes, 1)) for i in range(3)]
        parent, child = pty.openpty()
        process = subprocess.Popen([HEAP_PROFILE, "query", "-i", "-Q", "select 1 as one", *paths], stdin=child, stdout=child, stderr=child, close_fds=True,
                                   env={**os.environ, "HOME": self.directory, "TERM": "dumb"})
        self.addCleanup(lambda: (process.kill(), process.wait()))
        os.close(child)
        os.write(parent, b"select count(*) + 4700 + 8 as n from heap_graph;\n")
        output = b""
        while b"4711" not in output:
            self.assertTrue(select.select([parent], [], [], 60)[0], output)
            try:
                output += os.read(parent, 4096)
            except OSError:  # it has ended
                self.fail(output)
        sizes, is_copy = {"Size": 0, "Rss": 0}, False
        with open(f"/proc/{process.pid}/smaps") as file:
            for line in file:
                name = line.split(":")[0]
                if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
                    is_copy = line.endswith("(deleted)\n") and "/#" in line
                elif is_copy and name in sizes:
                    sizes[name] += int(line.split()[1]) * 1024
        os.write(parent, b".quit\n")
        os.close(parent)
        self.assertGreater(sizes["Size"], 3 * self.COPY, "they are mapped")
        self.assertLess(sizes["Rss"], self.COPY // 2)


class Strings(HprofTest):
    def test_texts_that_are_there_several_times(self):
        dump = Dump(version="1.0.2").string(2, "value").load_class(20, "java/lang/String")
        texts = [b"twice \x1b[31m\n", b"once", b"twice \x1b[31m\n"]
        dump.segment(dump.class_dump(20, 0, [2]),
                     *(dump.instance(100 + 8 * i, 20, 200 + 8 * i) for i in range(3)),
                     *(dump.numbers(200 + 8 * i, text) for i, text in enumerate(texts))).end()
        path = self.write("a.hprof", dump.bytes)
        done = hprof("strings", "--json", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual((found["all_strings"], found["texts"]), (3, 1))
        row = found["strings"][0]
        self.assertEqual((row["text"], row["length"], row["strings"], row["arrays"]), (texts[0].decode(), 12, 2, 2))
        self.assertEqual(row["wasted"] * 2, row["bytes"])
        self.assertEqual(found["wasted"], row["wasted"])
        done = hprof("strings", path)
        self.assertIn('"twice ?[31m?"', done.stdout)
        self.assertNotIn("\x1b", done.stdout)

    def test_a_dump_without_strings(self):
        done = hprof("strings", "--json", self.write("a.hprof", phone()))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["strings"], [])


class Finding(HprofTest):
    def found(self, *arguments):
        done = hprof("find", "--json", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def setUp(self):
        super().setUp()
        dump = Dump(version="1.0.2").string(2, "value").string(3, "name")
        dump.load_class(20, "java/lang/String").load_class(30, "Owner")
        dump.segment(dump.root(0xFF, 400), dump.class_dump(20, 0, [2]), dump.class_dump(30, 0, [3]), dump.instance(100, 20, 200),
                     dump.numbers(200, b"pool \x1b[1m"), dump.instance(400, 30, 100), dump.instance(408, 30, 0),
                     dump.numbers(216, b"x" * 100)).end()
        self.dump = self.write("a.hprof", dump.bytes)

    def test_by_class_by_value_and_by_text(self):
        for arguments, addresses in [(["Owner"], ["0x190", "0x198"]), (["Owner", "name=null"], ["0x198"]),
                                     (["*", "Owner.name~pool"], ["0x190"]), (["java.lang.String", "value~pool"], ["0x64"]),
                                     (["Owner", "name=0x64"], ["0x190"]), (["Owner", "name=pool"], [])]:
            found = self.found(self.dump, *arguments)
            self.assertEqual([row["address"] for row in found["objects"]], addresses, arguments)
            self.assertEqual(found["all_objects"], len(addresses))
        self.assertEqual(self.found(self.dump, "Owner", "name~pool")["objects"][0]["texts"], ["pool \x1b[1m"])

    def test_the_largest_come_first(self):
        rows = self.found("--top", "1", self.dump, "*[]")
        self.assertEqual(([row["address"] for row in rows["objects"]], rows["all_objects"]), (["0xd8"], 2))
        rows = self.found("--retained", self.dump, "Owner")["objects"]
        self.assertEqual([row["address"] for row in rows], ["0x190", "0x198"])
        self.assertGreater(rows[0]["retained"], rows[0]["bytes"])
        self.assertEqual(rows[1]["retained"], 0, "nothing holds it")

    def test_as_text_for_people(self):
        done = hprof("find", self.dump, "Owner", "name~pool")
        self.assertRegex(done.stdout, r'^.*a\.hprof: 1 object, 16 B\n\n +bytes  object\n +16  Owner 0x190 "pool \?\[1m"\n$')

    def test_long_texts_are_whole_in_json_and_say_where_they_are_not(self):
        dump = Dump(version="1.0.2").string(2, "value").load_class(20, "java/lang/String")
        lengths = (1000, 10_000, 10_001)
        dump.segment(dump.class_dump(20, 0, [2]), *(dump.instance(100 + i, 20, 200 + i) for i in range(3)),
                     *(dump.numbers(200 + i, b"x" * length) for i, length in enumerate(lengths))).end()
        path = self.write("long.hprof", dump.bytes)
        rows = sorted(self.found(path, "java.lang.String", "value~x")["objects"], key=lambda row: row["address"])
        self.assertEqual([(row["texts"], row["is_cut"]) for row in rows],
                         [(["x" * 1000], False), (["x" * 10_000], False), (["x" * 10_000], True)])
        self.assertIn(' "' + "x" * 90, hprof("find", path, "java.lang.String", "value~x").stdout)
        self.assertNotIn("x" * 101, hprof("find", path, "java.lang.String", "value~x").stdout)

    def test_many_fields_of_one_name_are_said_not_to_be_compared(self):
        dump = Dump(version="1.0.2").string(2, "field").load_class(20, "Owner")
        dump.segment(dump.class_dump(20, 0, [2] * 65), dump.instance(100, 20, *[0] * 64, 5)).end()
        path = self.write("many.hprof", dump.bytes)
        found = self.found(path, "Owner", "field=0x5")
        self.assertEqual((found["objects"], found["notes"]),
                         ([], ["classes have more than 64 fields of a name: the others were not compared"]))
        self.assertIn("more than 64 fields", hprof("find", path, "Owner", "field=0x5").stderr)

    def test_what_cannot_be_found(self):
        for arguments, code, cause in [(["Missing"], 1, "cannot find objects of Missing: the dump has no such class"),
                                       (["Owner", "nam=1"], 1, "cannot find objects by nam: no class that Owner names has a field"),
                                       (["Owner", "name"], 2, "cannot find objects by name: it is neither FIELD=VALUE nor FIELD~TEXT"),
                                       ([], 2, "cannot show find: a class is needed")]:
            done = hprof("find", self.dump, *arguments)
            self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
            self.assertIn("heap_profile hprof: " + cause, done.stderr)


class Tables(HprofTest):
    def test_all_dumps_of_a_file(self):
        dump = Dump(version="1.0.2").string(2, "next").load_class(20, "Node")
        for objects in (1, 2):
            dump.segment(dump.root(0x05, 20), dump.root(0xFF, 100), dump.class_dump(20, 0, [2]),
                         *(dump.instance(100 + i, 20, 100) for i in range(objects))).end()
        for path in (self.write("a.hprof", dump.bytes), self.write("a.hprof.gz", gzip.compress(dump.bytes))):
            rows, _ = query(path, "SELECT ts, truncated, count(*) AS objects FROM heap_graph g JOIN heap_graph_object o "
                                  "ON g.upid = o.upid AND g.ts = graph_sample_ts JOIN heap_graph_class c ON c.id = type_id "
                                  "WHERE c.name = 'Node' GROUP BY 1 ORDER BY 1")
            self.assertEqual([(row["truncated"], row["objects"]) for row in rows], [(0, 1), (0, 2)])

    def test_a_cut_dump_says_so(self):
        rows, message = query(self.write("a.hprof", phone()[:-40]), "SELECT truncated FROM heap_graph")
        self.assertEqual(rows, [{"truncated": 1}])
        self.assertIn("it is cut at byte", message)

    def test_roots_and_names(self):
        rows, _ = query(self.write("a.hprof", phone(kinds=(0x41,))),
                        "SELECT a.address AS owner, b.address AS owned, field_name, a.root_type FROM heap_graph_reference "
                        "JOIN heap_graph_object a ON a.id = owner_id JOIN heap_graph_object b ON b.id = owned_id "
                        "WHERE a.address = 100 AND b.address = 101")
        self.assertEqual(rows, [{"owner": 100, "owned": 101, "field_name": "com.example.Node.next", "root_type": "ROOT_JNI_LOCAL"}])

    def test_trace_processor_shell_opens_it(self):
        path = self.write("a.hprof", phone())
        sql = ("SELECT o.address, o.self_size, o.retained_size, c.name FROM heap_graph_object o "
               "JOIN heap_graph_class c ON c.id = type_id ORDER BY 1")
        with open(self.path("q.sql"), "w", encoding="utf-8") as out:
            out.write(sql)
        done = subprocess.run([os.path.join(COMPAT, "trace_processor_shell"), "-q", self.path("q.sql"), path],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows, _ = query(path, sql)
        self.assertEqual([row["name"] for row in csv.DictReader(io.StringIO(done.stdout))], [row["name"] for row in rows])
        kept = {row["address"]: row["retained_size"] for row in rows}
        dominators = json.loads(hprof("dominators", "--json", "--top", "0", path).stdout)["objects"]
        self.assertTrue(dominators)
        for row in dominators:
            self.assertEqual(kept[int(row["address"], 16)], row["retained"])

    def test_what_is_in_arrays(self):
        path = self.write("a.hprof", phone(no_data=True, kinds=(0x41,)))
        rows, _ = query(path, "SELECT address, array_element_type AS type, array_element_count AS count, "
                              "array_data_id IS NOT NULL AS has_data, array_data_hash AS hash, "
                              "__intrinsic_heap_graph_get_array_json(array_data_id, array_element_type, array_element_count) AS json "
                              "FROM heap_graph_object o JOIN heap_graph_object_data d ON d.id = o.object_data_id "
                              "WHERE array_element_type IS NOT NULL ORDER BY 1")
        self.assertEqual(rows, [
            {"address": 103, "type": "byte", "count": 10, "has_data": 1, "hash": murmur(b"some bytes"),
             "json": str(list(b"some bytes")).replace(" ", "")},
            {"address": 104, "type": "int", "count": 5, "has_data": 0, "hash": None, "json": None}])

    def test_class_objects_are_named_by_their_class(self):
        rows, _ = query(self.write("a.hprof", phone(kinds=(0x41,))),
                        "SELECT address, name, kind FROM heap_graph_object o JOIN heap_graph_class c ON c.id = type_id "
                        "WHERE name LIKE 'java.lang.Class%' ORDER BY 1")
        self.assertEqual([(row["address"], row["name"]) for row in rows],
                         [(10, "java.lang.Class<java.lang.Class>"), (20, "java.lang.Class<com.example.Node>"),
                          (30, "java.lang.Class<com.example.Node[]>")])
        self.assertEqual({row["kind"] for row in rows}, {"KIND_CLASS"})

    def test_commands_about_stacks_name_those_about_objects(self):
        path = self.write("a.hprof", phone())
        for verb in ("show", "stats", "leaks"):
            done = subprocess.run([HEAP_PROFILE, verb, path], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(f"cannot read {path}: it is a heap dump of Java; heap_profile hprof leaks FILE and heap_profile report "
                          "FILE show what is in it", done.stderr)


class KeptIndex(HprofTest):
    def setUp(self):
        super().setUp()
        self.dump = self.write("a.hprof", phone(kinds=(0x41,)))
        self.index = self.dump + ".hpi"

    def notes(self, *arguments):
        done = hprof("dominators", "--json", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        self.assertGreater(len(found["objects"]), 0)
        return found["notes"]

    def test_one_that_does_not_fit_is_said_and_replaced(self):
        self.assertEqual(self.notes("--keep-index", self.dump), [])
        stale = (f"its index {self.index} is not used: the dump has changed since, or it was made with another --holding or by another "
                 "version; --keep-index replaces it")
        self.assertEqual(self.notes("--holding", "weak", self.dump), [stale])
        os.utime(self.dump, ns=(1, 1))
        self.assertEqual(self.notes(self.dump), [stale])
        self.assertEqual(self.notes("--keep-index", self.dump), [])
        self.assertEqual(self.notes(self.dump), [])
        with open(self.index, "wb") as file:
            file.write(b"not an index")
        self.assertEqual(self.notes(self.dump), [f"its index {self.index} is not used: it is damaged, or no index; --keep-index replaces it"])

    def test_what_others_may_write_is_not_used(self):
        self.notes("--keep-index", self.dump)
        os.chmod(self.index, 0o622)
        self.assertEqual(self.notes(self.dump), [f"its index {self.index} is not used: it is no file that only you or root can write"])
        os.rename(self.index, self.path("other"))
        os.symlink(self.path("other"), self.index)
        self.assertEqual(self.notes(self.dump), [f"its index {self.index} is not used: Too many levels of symbolic links"])

    def test_what_cannot_be_kept_is_said_and_the_answer_given(self):
        os.mkdir(self.index)
        notes = self.notes("--keep-index", self.dump)
        self.assertEqual(notes[0], f"its index {self.index} is not used: it is no file that only you or root can write")
        self.assertIn("no index of it is kept: cannot ", notes[1])
        compressed = self.write("a.hprof.gz", gzip.compress(phone(kinds=(0x41,))))
        self.assertEqual(self.notes("--keep-index", compressed),
                         ["no index of it is kept: it is compressed, comes through a pipe, or may be changed by another user, and a copy "
                          "of it is read"])
        cut = self.write("cut.hprof", phone(kinds=(0x41,))[:-20])
        self.assertIn("no index of it is kept: it is damaged", self.notes("--keep-index", cut))
        self.assertEqual(sorted(name for name in os.listdir(self.directory) if name.endswith(".hpi")), ["a.hprof.hpi"])

    def test_each_dump_of_a_file_has_its_own(self):
        both = self.write("both.hprof", phone(kinds=(0x41,)) + phone(kinds=(0x41, 0x5A))[31:])
        for number in ("1", "2"):
            self.notes("--keep-index", "--dump", number, both)
            self.assertTrue(os.path.exists(f"{both}.{number}.hpi"))
        self.assertEqual(self.notes("--dump", "1", both), [])

    def test_only_what_examines_a_dump_has_one(self):
        done = hprof("conv", "--keep-index", self.dump, self.path("out"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("cannot use --keep-index with conv: only what examines a dump has an index of it", done.stderr)


class LiveMachine(WithMachine):
    def histogram(self, *arguments):
        done = hprof("histogram", "--json", "--top", "0", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_the_histogram_is_the_machines_own(self):
        for flags in ([], ["-XX:-UseCompressedOops"], ["-XX:-UseCompressedOops", "-XX:-UseCompressedClassPointers"],
                      ["-XX:-UseCompressedClassPointers"], ["-XX:ObjectAlignmentInBytes=16"], ["-XX:-EnableContended"]):
            process = self.start(*flags, program=["Leaks", "contended"])
            before = machines_histogram(process)
            jcmd(process, "GC.heap_dump", "-overwrite", self.path("a.hprof"))
            after = machines_histogram(process)
            ours = {row["class"]: (row["objects"], row["bytes"]) for row in self.histogram(self.path("a.hprof"))["classes"]}
            # Objects for classes that are loaded and not linked are not in a dump.
            stable = {name: row for name, row in before.items() if after.get(name) == row and name != "java.lang.Class"}
            self.assertGreater(len(stable), 150)
            self.assertLessEqual({"java.util.concurrent.ForkJoinPool", "java.util.concurrent.atomic.Striped64$Cell"}, set(stable))
            self.assertEqual({name: (ours.get(name), row) for name, row in stable.items() if ours.get(name) != row}, {}, flags)

    def test_an_index_gives_the_answers_of_the_dump(self):
        jcmd(self.start(), "GC.heap_dump", "-overwrite", self.path("a.hprof"))
        path = self.path("a.hprof")
        questions = [[verb, path] for verb in ("histogram", "leaks", "dominators", "threads", "collections", "loaders", "unreachable")]
        questions += [["histogram", "--retained", path], ["dominators", path, "java.lang.Class"], ["path", path, "Leaky$Entry"],
                      ["object", path, "Leaky$Entry"], ["paths", path, "java.lang.String"], ["find", "--retained", path, "*", "name~a"],
                      ["compare", "--retained", path, path]]
        without = [self.answer(*question) for question in questions]
        self.assertFalse(os.path.exists(path + ".hpi"))
        self.assertEqual(self.answer("dominators", "--keep-index", path), without[2])
        self.assertEqual(os.stat(path + ".hpi").st_mode & 0o777, 0o600)
        self.assertLess(os.path.getsize(path + ".hpi"), 0.4 * os.path.getsize(path))
        made = os.stat(path + ".hpi").st_mtime_ns
        for question, answer in zip(questions, without):
            self.assertEqual(self.answer(*question), answer, question)
        self.assertEqual(os.stat(path + ".hpi").st_mtime_ns, made)

    def answer(self, *arguments):
        done = hprof(arguments[0], "--json", "--top", "200", *arguments[1:])
        self.assertEqual((done.returncode, done.stderr), (0, ""), arguments)
        return json.loads(done.stdout)

    def test_a_leak_is_found_by_name(self):
        jcmd(self.start(), "GC.heap_dump", "-overwrite", self.path("a.hprof"))
        done = hprof("path", self.path("a.hprof"), "java.util.ArrayList")
        self.assertIn(".static LEAK -> java.util.ArrayList", done.stdout)
        done = hprof("path", self.path("a.hprof"), "Leaky$Entry")
        self.assertIn(".static chain -> Leaky$Entry", done.stdout)
        done = hprof("histogram", "--retained", "--json", self.path("a.hprof"))
        rows = {row["class"]: row for row in json.loads(done.stdout)["classes"]}
        self.assertEqual(rows["Leaky$Entry"]["objects"], 5000)
        self.assertGreater(rows["java.util.ArrayList"]["retained"], 1_000_000)
        self.assertGreater(rows["Leaky$Entry"]["retained"], 5000 * (24 + 24 + 24))

    def test_threads_have_their_names_and_stacks(self):
        jcmd(self.start(), "GC.heap_dump", "-overwrite", self.path("a.hprof"))
        done = hprof("threads", "--json", "--top", "0", self.path("a.hprof"))
        self.assertEqual(done.returncode, 0, done.stderr)
        threads = {thread["name"]: thread for thread in json.loads(done.stdout)["threads"]}
        self.assertLessEqual({"main", "Finalizer", "Reference Handler"}, set(threads))
        frames = threads["main"]["frames"]
        self.assertRegex(frames[-1]["method"], r"^Leaky\.main\(Leaky\.java:\d+\)$")
        self.assertIn("java.io.BufferedReader", [local["class"] for local in frames[-1]["locals"]])
        self.assertEqual(threads["main"]["object"]["class"], "java.lang.Thread")
        done = hprof("threads", self.path("a.hprof"))
        self.assertIn("    at Leaky.main(Leaky.java:", done.stdout)

    def test_an_object_shows_what_is_in_it(self):
        jcmd(self.start(), "GC.heap_dump", "-overwrite", self.path("a.hprof"))
        path = self.path("a.hprof")
        done = hprof("object", path, "Leaky$Entry")  # the one that retains most: the last that was made
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r'^Leaky\$Entry 0x\w+, 24 B, retains [\d.]+ [KM]iB\n')
        self.assertRegex(done.stdout, r'\n  Leaky\$Entry.next = Leaky\$Entry 0x\w+, retains [\d.]+ [KM]iB\n')
        self.assertRegex(done.stdout, r'\n  Leaky\$Entry.text = java.lang.String 0x\w+ "entry 4999", retains \d\d B\n')
        found = json.loads(hprof("object", "--json", path, "Leaky$Entry").stdout)
        values = {value["name"]: value for value in found["values"]}
        text = values["Leaky$Entry.text"]
        self.assertEqual((text["type"], text["text"], text["object"]["class"]), ("object", "entry 4999", "java.lang.String"))
        done = hprof("object", path, text["object"]["address"])
        self.assertRegex(done.stdout, r'^java.lang.String 0x\w+ "entry 4999", 24 B, retains')
        self.assertIn("  java.lang.String.coder = 0\n", done.stdout)
        holder = json.loads(hprof("path", "--json", path, "Leaky$Entry").stdout)["path"]
        of_class = next(step for step in holder if step["class"] == "class Leaky")
        self.assertIn("  Leaky.chain = Leaky$Entry 0x", hprof("object", path, of_class["address"]).stdout)
        elements = json.loads(hprof("object", "--json", "--top", "5", path, "java.lang.Object[]").stdout)
        self.assertEqual([value["name"] for value in elements["values"]], [f"[{i}]" for i in range(5)])
        self.assertGreaterEqual(elements["all_values"], 1000)
        self.assertRegex(hprof("object", path, "java.lang.Object[]").stdout, r"\n  \[19\] = byte\[\] 0x.*\n  and [\d.k]+ more\n$")
        self.assertEqual(hprof("object", path).returncode, 2)

    def test_texts_of_the_machines_strings(self):
        jcmd(self.start(), "GC.heap_dump", "-overwrite", self.path("a.hprof"))
        found = json.loads(hprof("strings", "--json", "--top", "0", self.path("a.hprof")).stdout)
        self.assertGreater(found["all_strings"], 5000)
        self.assertFalse([row for row in found["strings"] if row["text"].startswith("entry ")], "each is there once")

    def test_tables_and_views_agree(self):
        jcmd(self.start(), "GC.heap_dump", "-overwrite", "-all", self.path("a.hprof"))
        path = self.path("a.hprof")
        rows, _ = query(path, OF_CLASSES)
        self.assertCountEqual(rows, self.histogram(path)["classes"])
        rows, _ = query(path, "INCLUDE PERFETTO MODULE android.memory.heap_graph.dominator_tree; "
                              "SELECT address, self_size AS bytes, retained_size AS retained FROM heap_graph_dominator_tree "
                              "JOIN heap_graph_object USING (id) WHERE idom_id IS NULL")
        views = json.loads(hprof("dominators", "--json", "--top", "0", path).stdout)
        self.assertCountEqual([(hex(row["address"]), row["bytes"], row["retained"]) for row in rows],
                              [(row["address"], row["bytes"], row["retained"]) for row in views["objects"]])
        rows, _ = query(path, "SELECT sum(self_size) AS bytes FROM heap_graph_object WHERE reachable")
        self.assertEqual(rows[0]["bytes"], views["reachable_bytes"])

    def test_values_of_fields(self):
        jcmd(self.start(), "GC.heap_dump", "-overwrite", self.path("a.hprof"))
        path = self.path("a.hprof")
        rows, _ = query(path, VALUES + "WHERE c.name = 'java.lang.Class<java.lang.Math>' AND field_name = 'PI'")
        self.assertEqual(rows, [{"class": "java.lang.Class<java.lang.Math>", "field_name": "PI", "field_type": "double",
                                 "value": 3.141592653589793}])
        rows, _ = query(path, VALUES + "WHERE c.name = 'java.util.HashMap' AND field_name = 'java.util.HashMap.loadFactor'")
        self.assertGreater(len(rows), 10)
        self.assertLessEqual({0.75}, {row["value"] for row in rows})
        rows, _ = query(path, "SELECT count(*) AS entries FROM heap_graph_reference r JOIN heap_graph_object t ON t.id = owned_id "
                              "JOIN heap_graph_object_data d ON d.id = t.object_data_id "
                              "WHERE field_name = 'Leaky$Entry.text' AND value_string LIKE 'entry %'")
        self.assertEqual(rows, [{"entries": 5000}])
        shown = json.loads(hprof("object", "--json", "--top", "0", path, "java.util.ArrayList").stdout)
        rows, _ = query(path, "SELECT field_name, int_value FROM heap_graph_object o JOIN heap_graph_object_data d "
                              "ON d.id = o.object_data_id JOIN heap_graph_primitive USING (field_set_id) "
                              f"WHERE address = {int(shown['object']['address'], 16)}")
        self.assertEqual({row["field_name"]: str(row["int_value"]) for row in rows},
                         {value["name"]: value["value"] for value in shown["values"] if value["type"] == "int"})
        rows, _ = query(path, "SELECT field_type, count(*) AS fields, sum((bool_value IS NOT NULL) + (byte_value IS NOT NULL) + "
                              "(char_value IS NOT NULL) + (short_value IS NOT NULL) + (int_value IS NOT NULL) + "
                              "(long_value IS NOT NULL) + (float_value IS NOT NULL) + (double_value IS NOT NULL)) AS valued "
                              "FROM heap_graph_primitive WHERE field_type NOT IN ('float', 'double') GROUP BY 1")
        self.assertGreater(len(rows), 4)
        for row in rows:
            self.assertEqual(row["fields"], row["valued"], row)

    def test_the_machines_own_compression(self):
        process = self.start()
        jcmd(process, "GC.heap_dump", "-overwrite", "-gz=1", self.path("a.hprof.gz"))
        jcmd(process, "GC.heap_dump", "-overwrite", self.path("a.hprof"))
        entries = [next(row for row in self.histogram(self.path(name))["classes"] if row["class"] == "Leaky$Entry")
                   for name in ("a.hprof", "a.hprof.gz")]
        self.assertEqual(entries[0], entries[1])


if __name__ == "__main__":
    unittest.main()
