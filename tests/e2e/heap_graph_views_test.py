"""heap_profile hprof on heaps of traces: what it says of a dump it says of the dump's trace, and of one as Perfetto records them."""

import gzip
import json
import os
import re
import subprocess
import unittest

from google.protobuf import text_format

import trace_pb2
from hprof_dump import Dump, phone
from java_machine import HAS_JAVA, WithMachine, jcmd
from profile_run import HEAP_PROFILE
from with_directory import WithDirectory

COMPAT = os.environ["COMPAT"]
WHOLE_HEAP = ("histogram", "histogram --retained", "dominators", "leaks", "loaders", "unreachable")


def hprof(*arguments, **kwargs):
    return subprocess.run([HEAP_PROFILE, "hprof", *arguments], capture_output=True, text=True, timeout=120, **kwargs)


def comparable(value):
    """Without what a trace does not have: addresses, places in arrays, names of threads, the file."""
    if isinstance(value, dict):
        return {key: in_any_order(comparable(item)) if key == "classes" and isinstance(item, list) else comparable(item)
                for key, item in value.items() if key not in ("address", "id", "file", "notes", "thread")}
    if isinstance(value, list):
        return [comparable(item) for item in value]
    return re.sub(r" 0x\w+$| id=\d+$", "", re.sub(r"\[\d+\]", "[]", value)) if isinstance(value, str) else value


def in_any_order(rows):
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


class Views:
    def ask(self, words, path, *rest):
        verb, *flags = words.split()
        done = hprof(verb, "--json", "--top", "0", *flags, path, *rest)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def trace_of(self, dump):
        done = hprof("trace", dump, dump + ".trace")
        self.assertEqual(done.returncode, 0, done.stderr)
        return dump + ".trace"

    def check_same(self, words, dump, trace, *rest):
        of_dump, of_trace = (comparable(self.ask(words, path, *rest)) for path in (dump, trace))
        for key, value in of_dump.items():
            with self.subTest(words=words, rest=rest, key=key):
                if isinstance(value, list) and key != "path":  # of equal ones any may be first
                    self.assertEqual(in_any_order(of_trace[key]), in_any_order(value))
                else:
                    self.assertEqual(of_trace[key], value)
        return of_trace


def garden():
    """Two loaders with a class of one name, statics, arrays, weak and soft references, garbage, classes that are roots and others."""
    dump = Dump(version="1.0.2", id_bytes=8)
    for number, text in ((2, "next"), (3, "CACHE"), (4, "referent"), (5, "queue")):
        dump.string(number, text)
    classes = {10: "java.lang.Class", 11: "java.lang.Object", 20: "Loader", 30: "Node", 31: "Node", 40: "Node[]", 50: "Holder", 60: "Unused",
               70: "java.lang.ref.Reference", 71: "java.lang.ref.WeakReference", 72: "java.lang.ref.SoftReference"}
    for number, name in classes.items():
        dump.load_class(number, name)
    dump.segment(
        *(dump.root(0x05, number) for number in (10, 11, 20, 70, 71, 72)), dump.root(0x08, 100, 1, 2), dump.root(0x01, 200, 0, 0),
        dump.root(0x07, 300), dump.root(0x03, 310, 1, 2), dump.root(0x03, 320, 1, 2), dump.class_dump(10, 11), dump.class_dump(11), dump.class_dump(20, 11),
        dump.class_dump(30, 11, [2]), dump.class_dump(31, 30, [2], loader=100), dump.class_dump(40, 11, loader=100),
        dump.class_dump(50, 11, [2], [(3, 500)], loader=100), dump.class_dump(60, 11, loader=100), dump.class_dump(70, 11, [4, 5]),
        dump.class_dump(71, 70), dump.class_dump(72, 70), dump.instance(100, 20), dump.instance(200, 50, 210), dump.objects(210, 40, 0, 220, 0, 230),
        dump.instance(220, 30, 221), dump.instance(221, 30, 0), dump.instance(230, 31, 0, 231), dump.numbers(231, b"x" * 3000),
        dump.objects(300, 40, 221), dump.instance(310, 71, 600, 610), dump.instance(320, 72, 620, 0), dump.objects(500, 40, 510),
        dump.instance(510, 31, 511, 0), dump.instance(511, 30, 0), dump.numbers(600, b"weakly" * 99), dump.numbers(610, b"q"),
        dump.numbers(620, b"softly" * 99), dump.instance(700, 30, 710), dump.instance(710, 30, 710), dump.numbers(720, b"garbage"))
    return dump.end().bytes


class TracesOfDumps(WithDirectory, Views):
    def setUp(self):
        super().setUp()
        self.dump = self.write("a.hprof", garden())
        self.trace = self.trace_of(self.dump)

    def test_views_of_the_whole_heap(self):
        for words in WHOLE_HEAP:
            found = self.check_same(words, self.dump, self.trace)
            self.assertGreater(len(next(value for value in found.values() if isinstance(value, list))), 0, words)
        names = [row["name"] for row in self.ask("loaders", self.trace)["loaders"]]
        self.assertEqual(sorted(comparable(names)), ["Loader", "the virtual machine's own"])

    def test_views_of_objects_and_classes(self):
        for name in ("Node", "Node[]", "byte[]", "class Holder", "java.lang.Class<Holder>", "Loader", "java.lang.Class"):
            self.check_same("path", self.dump, self.trace, name)
            self.check_same("dominators", self.dump, self.trace, name)
        for name in ("Node", "byte[]", "java.lang.Class"):
            self.check_same("paths", self.dump, self.trace, name)
            self.check_same("find --retained", self.dump, self.trace, name)
        self.check_same("find", self.dump, self.trace, "*")
        path = self.ask("path", self.trace, "byte[]")
        self.assertEqual([(step["class"], step["reference"]) for step in path["path"]],
                         [("Holder", ""), ("Node[]", ".next"), ("Node", "[]"), ("byte[]", ".next")])
        path = self.ask("path", self.trace, "id=%d" % self.ask("find", self.trace, "Node")["objects"][0]["id"])
        self.assertEqual(path["path"][-1]["class"], "Node")

    def test_references_that_hold(self):
        for kind in ("strong", "soft", "weak"):
            for words in ("histogram --retained", "unreachable", "dominators"):
                self.check_same(f"{words} --holding {kind}", self.dump, self.trace)

    def test_a_static_field_is_one_of_its_class(self):
        self.assertEqual(self.ask("path", self.trace, "Node[]")["root"], "ROOT_JNI_GLOBAL")
        text = hprof("path", "--holding", "weak", self.trace, "id=%d" % self.static_array()).stdout
        self.assertRegex(text, r"\.<class> -> class Holder id=\d+, retains [\d.]+ \w+\n  \.static CACHE -> Node\[\] id=\d+, retains")

    def static_array(self):
        values = self.ask("object", self.trace, "class Holder")["values"]
        return next(value["object"]["id"] for value in values if value["name"] == "Holder.CACHE")

    def test_what_is_in_an_object(self):
        for name, want in (("Loader", []), ("Holder", [("Holder.next", "Node[]")]), ("Node[]", [("[]", "Node"), ("[]", "Node")])):
            found = self.ask("object", self.trace, name)
            values = [(value["name"], value["object"]["class"]) for value in found["values"] if value["name"] != "<class>"]
            self.assertEqual(values, want)
            self.assertEqual(found["all_values"], len(found["values"]))
        done = hprof("object", "--top", "1", self.trace, "Node[]")
        self.assertRegex(done.stdout, r"^Node\[\] id=\d+, \d+ B, retains [\d.]+ KiB\n  .* = .*\n  and \d more\n$")
        self.assertIn("numbers of next to no class: there may be more in it", done.stderr)

    def test_a_trace_is_compared_with_a_dump(self):
        other = self.write("b.hprof", phone(kinds=(0x41,)))
        self.assertIn("No class has more or less", hprof("compare", "--retained", self.dump, self.trace).stdout)
        self.assertIn("No class has more or less", hprof("compare", self.trace, self.dump).stdout)
        for one, two in ((self.dump, self.trace_of(other)), (self.trace, other)):
            self.assertEqual(comparable(self.ask("compare --retained", one, two)["classes"]),
                             comparable(self.ask("compare --retained", self.dump, other)["classes"]))

    def test_compressed_traces_and_pipes(self):
        want = self.ask("histogram", self.trace)["classes"]
        with open(self.trace, "rb") as file:
            data = file.read()
        self.assertEqual(self.ask("histogram", self.write("a.gz", gzip.compress(data)))["classes"], want)
        with open(self.trace, "rb") as file:
            done = hprof("histogram", "--json", "--top", "0", "-", stdin=file)
        self.assertEqual(json.loads(done.stdout)["classes"], want)
        cut = hprof("histogram", self.write("cut.gz", gzip.compress(data)[:-20]))
        self.assertEqual(cut.returncode, 1)
        self.assertRegex(cut.stderr, "the trace has no heap graph; .*; it ends in the middle of a compressed stream")

    def test_what_a_trace_cannot_answer(self):
        out = self.path("out")
        for words, code, cause in (
                *((([verb, self.trace], 2, f"cannot show {verb} of {self.trace}: a heap graph of a trace has no field values, texts or stacks; "
                                           "take an hprof dump of the program")) for verb in ("strings", "threads", "collections")),
                (["find", self.trace, "Node", "next=null"], 2, "it is a trace, and what is in fields is not in it; leave the condition out"),
                (["find", self.trace, "Nodes"], 1, "cannot find objects of Nodes: the dump has no such class"),
                (["path", self.trace, "id=99999"], 1, "no object has this address or class"), (["path", self.trace, "id=x"], 1, "no object has this"),
                (["path", self.trace, "0x64"], 1, "no object has this address or class"),
                (["trace", self.trace, out], 2, "it is one already, and what reads traces reads it as it is"),
                (["conv", self.trace, out], 1, "it is a trace, and only hprof dumps are converted"),
                (["histogram", "--dump", "2", self.trace], 2, f"cannot examine dump 2 of {self.trace}: the trace has 1")):
            with self.subTest(words):
                done = hprof(*words)
                self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
                self.assertIn(cause, done.stderr)
                self.assertFalse(os.path.exists(out))
        done = subprocess.run([os.path.join(COMPAT, "hprof-conv"), self.trace, out], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 255, done.stderr)


# As ART records it: ids anywhere, fields of classes, differences of ids, weak references, memory of a bitmap by a Cleaner.
PERFETTO = """
packet { process_tree { processes { pid: 7 cmdline: "com.example.app" } processes { pid: 8 cmdline: "com.example.other" } } }
packet { timestamp: 1000000000 trusted_packet_sequence_id: 1 heap_graph { pid: 8 roots { object_ids: 5 root_type: 1 }
  types { id: 1 class_name: "Other" } objects { id: 5 type_id: 1 self_size: 48 } } }
packet { timestamp: 2500000000 trusted_packet_sequence_id: 1 heap_graph { pid: 7 continued: true index: 0
  field_names { iid: 1 str: "a.a next" }
  field_names { iid: 2 str: "java.lang.Object java.lang.ref.Reference.referent" }
  field_names { iid: 3 str: "java.lang.Runnable sun.misc.Cleaner.thunk" }
  field_names { iid: 4 str: "libcore.util.NativeAllocationRegistry libcore.util.NativeAllocationRegistry$CleanerThunk.this$0" }
  field_names { iid: 5 str: "a.a com.example.App.sCache" }
  field_names { iid: 6 str: "java.lang.ClassLoader java.lang.Class.classLoader" }
  location_names { iid: 1 str: "/data/app/com.example.app-1/base.apk" }
  types { id: 1 class_name: "com.example.App" object_size: 16 classloader_id: 300 }
  types { id: 2 class_name: "a.a" object_size: 24 reference_field_id: 1 classloader_id: 300 location_id: 1 }
  types { id: 3 class_name: "java.lang.ref.WeakReference" kind: 9 reference_field_id: 2 object_size: 24 }
  types { id: 4 class_name: "android.graphics.Bitmap" object_size: 40 }
  types { id: 5 class_name: "sun.misc.Cleaner" kind: 11 reference_field_id: 2 reference_field_id: 3 object_size: 32 }
  types { id: 6 class_name: "libcore.util.NativeAllocationRegistry$CleanerThunk" reference_field_id: 4 object_size: 16 }
  types { id: 7 class_name: "libcore.util.NativeAllocationRegistry" object_size: 24 }
  types { id: 8 class_name: "java.lang.Class<com.example.App>" kind: 5 object_size: 200 }
  types { id: 9 class_name: "dalvik.system.PathClassLoader" kind: 6 object_size: 56 }
  types { id: 10 class_name: "byte[]" kind: 4 }
  types { id: 11 class_name: "a.a[]" kind: 4 classloader_id: 300 } } }
packet { timestamp: 2500000000 trusted_packet_sequence_id: 1 heap_graph { pid: 7 continued: CONTINUED index: 1
  roots { object_ids: [100, 103] root_type: 5 } roots { object_ids: [150, 160] root_type: 1 }
  objects { id: 100 type_id: 8 reference_field_id: [5, 6] reference_object_id: [110, 300] }
  objects { id: 110 type_id: 2 reference_object_id: [111] }
  objects { id_delta: 1 type_id: 2 reference_object_id: [0] }
  objects { id: 300 type_id: 9 runtime_internal_object_id: [100] }
  objects { id: 150 type_id: 3 reference_object_id: [170] }
  objects { id: 160 type_id: 11 self_size: 28 reference_object_id: [161, 0, 110, 999] }
  objects { id: 161 type_id: 4 bitmap_width_field: 640 bitmap_height_field: 480 }
  objects { id: 170 type_id: 10 self_size: 5016 }
  objects { id: 103 type_id: 5 reference_object_id: [161, 104] }
  objects { id: 104 type_id: 6 reference_object_id: [105] }
  objects { id: 105 type_id: 7 native_allocation_registry_size_field: 4000001 } } }
packet { deobfuscation_mapping { obfuscated_classes { obfuscated_name: "a.a" deobfuscated_name: "com.example.Node" } package_name: "com.example.app" } }
"""


class TracesOfPerfetto(WithDirectory, Views):
    def setUp(self):
        super().setUp()
        self.trace = self.perfetto("a.trace")

    def perfetto(self, name, is_whole=True):
        text = PERFETTO.replace("CONTINUED", "false" if is_whole else "true")
        return self.write(name, text_format.Parse(text, trace_pb2.Trace()).SerializeToString())

    def test_classes(self):
        rows = {row["class"]: (row["objects"], row["bytes"], row["retained"]) for row in self.ask("histogram --retained", self.trace)["classes"]}
        self.assertEqual(rows, {
            "java.lang.Class": (1, 200, 256), "dalvik.system.PathClassLoader": (1, 56, 56), "com.example.Node": (2, 48, 48),
            "com.example.Node[]": (1, 28, 28 + 40 + 4_000_000), "android.graphics.Bitmap": (1, 40, 4_000_040),
            "[native] android.graphics.Bitmap": (1, 4_000_000, 4_000_000), "java.lang.ref.WeakReference": (1, 24, 24), "byte[]": (1, 5016, 0),
            "sun.misc.Cleaner": (1, 32, 72), "libcore.util.NativeAllocationRegistry$CleanerThunk": (1, 16, 40),
            "libcore.util.NativeAllocationRegistry": (1, 24, 24)})

    def test_garbage_is_what_is_referred_to_weakly(self):
        self.assertEqual(self.ask("unreachable", self.trace)["classes"], [{"class": "byte[]", "objects": 1, "bytes": 5016}])
        self.assertEqual(self.ask("unreachable --holding weak", self.trace)["classes"], [])
        path = self.ask("path --holding weak", self.trace, "byte[]")
        self.assertEqual([(step["class"], step["reference"]) for step in path["path"]], [("java.lang.ref.WeakReference", ""), ("byte[]", ".referent")])

    def test_ways_to_objects(self):
        self.assertEqual(self.ways("path", "dalvik.system.PathClassLoader"),
                         ("ROOT_STICKY_CLASS", [("class com.example.App", ""), ("dalvik.system.PathClassLoader", ".classLoader")]))
        root, way = self.ways("path", "com.example.Node")
        self.assertEqual((root, way[0]), ("ROOT_STICKY_CLASS", ("class com.example.App", "")))
        self.assertEqual(way[1], ("com.example.Node", ".static sCache"))
        root, way = self.ways("path", "[native] android.graphics.Bitmap")
        self.assertEqual([name for name, _ in way][-2:], ["android.graphics.Bitmap", "[native] android.graphics.Bitmap"])
        merged = self.ask("paths", self.trace, "com.example.Node")
        self.assertEqual([(way["depth"], way["name"], way["objects"]) for way in merged["ways"]],
                         [(0, "class com.example.App", 2), (1, "com.example.Node", 2)])

    def ways(self, verb, name):
        found = self.ask(verb, self.trace, name)
        return found["root"], [(step["class"], step["reference"]) for step in found["path"]]

    def test_what_has_piled_up_and_who_loaded_it(self):
        (suspect,) = self.ask("leaks", self.trace)["suspects"]
        self.assertEqual((suspect["object"]["class"], suspect["retained"]), ("[native] android.graphics.Bitmap", 4_000_000))
        loaders = {comparable(row["name"]): (row["classes"], row["objects"]) for row in self.ask("loaders", self.trace)["loaders"]}
        self.assertEqual(loaders, {"dalvik.system.PathClassLoader": (2, 3), "the virtual machine's own": (6, 6)})

    def test_what_the_trace_knows_of_a_bitmap(self):
        found = self.ask("object", self.trace, "android.graphics.Bitmap")
        self.assertEqual([(value["name"], value["type"], value["value"]) for value in found["values"]],
                         [("android.graphics.Bitmap.mWidth", "int", "640"), ("android.graphics.Bitmap.mHeight", "int", "480")])
        elements = self.ask("object", self.trace, "com.example.Node[]")["values"]
        self.assertEqual([value["object"] and value["object"]["class"] for value in elements], ["android.graphics.Bitmap", None, "com.example.Node", None])

    def test_ids_are_those_of_sql(self):
        done = subprocess.run([HEAP_PROFILE, "query", "--json", self.trace, "SELECT o.id FROM heap_graph_object o JOIN heap_graph_class c "
                               "ON c.id = type_id WHERE c.name = 'android.graphics.Bitmap'"], capture_output=True, text=True, check=True, timeout=60)
        (row,) = json.loads(done.stdout)
        self.assertIn(f"android.graphics.Bitmap id={row['id']}, retains", hprof("path", self.trace, f"id={row['id']}").stdout)

    def test_one_of_several_heaps_is_chosen(self):
        last = hprof("histogram", self.trace)
        self.assertIn("dump 2 of the 2 heaps in it is shown; --dump N is 1: com.example.other (pid 8) at 1.000 s, "
                      "2: com.example.app (pid 7) at 2.500 s", last.stderr)
        first = hprof("histogram", "--dump", "1", self.trace)
        self.assertRegex(first.stdout, r"(?m)^ +1 +48  Other$")
        self.assertIn("dump 1 of the 2 heaps", first.stderr)
        self.assertEqual(hprof("histogram", "--dump", "3", self.trace).returncode, 2)

    def test_one_of_several_processes_is_chosen(self):
        self.assertIn("(pid 7) at 2.500 s; -p PID leaves only those of one process", hprof("histogram", self.trace).stderr)
        for pid, name in (("8", "Other"), ("7", "com.example.Node")):
            done = hprof("histogram", "-p", pid, self.trace)
            self.assertRegex(done.stdout, rf"(?m)^ +\d+ +48  {name}$")
            self.assertNotIn("heaps", done.stderr)
        for arguments, message in (
                (["histogram", "-p", "9", self.trace], f"cannot examine process 9 in {self.trace}: the trace has no heap graph of it; it has 1: "
                 "com.example.other (pid 8) at 1.000 s, 2: com.example.app (pid 7) at 2.500 s"),
                (["histogram", "-p", "8", "--dump", "2", self.trace], f"cannot examine dump 2 of {self.trace}: the trace has 1 of process 8"),
                (["conv", "-p", "8", self.trace, self.trace + ".out"],
                 "cannot use -p with conv: only what examines a trace has several processes to choose from"),
                (["histogram", "-p", "8", self.write("a.hprof", garden())],
                 f"cannot choose process 8 in {self.path('a.hprof')}: it is an hprof dump, which is of one process; leave -p out")):
            done = hprof(*arguments)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(message, done.stderr)

    def test_two_heaps_of_a_trace_are_compared(self):
        forward = hprof("compare", self.trace)
        self.assertRegex(forward.stdout, f"^{re.escape(self.trace)}: dump 2, [^;]+; before: dump 1, ")
        self.assertRegex(forward.stdout, r"(?m)^ +0 +-1 +0 +-48  Other$")
        self.assertRegex(hprof("compare", "--before", "2", "--dump", "1", self.trace).stdout, r"(?m)^ +1 +\+1 +48 +\+48  Other$")
        compared = json.loads(hprof("compare", "--json", self.trace).stdout)
        self.assertEqual((compared["dump"], compared["before"]["dump"]), (2, 1))
        self.assertIn("No class has more or less", hprof("compare", "--before", "1", "--dump", "1", self.trace, self.trace).stdout)

    def test_missing_packets_are_said_to_be_missing(self):
        path = self.perfetto("cut.trace", is_whole=False)
        done = hprof("histogram", "--json", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("packets of this heap are missing: objects, and what holds them, may be, too", done.stderr)
        self.assertTrue(any("packets of this heap" in note for note in json.loads(done.stdout)["notes"]))
        self.assertIn("it is damaged", hprof("histogram", "--strict", path).stderr)

    def test_a_cut_trace_is_shown_up_to_there(self):
        with open(self.trace, "rb") as file:
            data = file.read()
        for cut, message in ((data[:-500], "it ends in the middle of a packet"), (gzip.compress(data[:300]) + gzip.compress(data[300:])[:-20],
                                                                               "it ends in the middle of a compressed stream")):
            path = self.write("cut.trace", cut)
            done = hprof("histogram", "--dump", "1", path)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("  Other\n", done.stdout)
            self.assertIn(message, done.stderr)
            strict = hprof("histogram", "--dump", "1", "--strict", path)
            self.assertEqual(strict.returncode, 1)
            self.assertIn("it is damaged", strict.stderr)

    def test_a_trace_without_a_heap(self):
        text = 'packet { process_tree { processes { pid: 7 cmdline: "com.example.app" } } }'
        path = self.write("none.trace", text_format.Parse(text, trace_pb2.Trace()).SerializeToString())
        done = hprof("histogram", path)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn(f"cannot examine {path}: the trace has no heap graph; the data source android.java_hprof records one", done.stderr)

    def test_forged_ids(self):
        """Objects twice, of no type, held by nobody, loaded by what is none, with sizes beyond all numbers; classes that end in themselves."""
        heap = "packet { timestamp: 5 trusted_packet_sequence_id: 1 heap_graph { pid: 7 %s } }"
        types = ("types { id: 1 class_name: 'java.lang.Class<java.lang.Class<X>>' superclass_id: 1 classloader_id: 77 kind: 5 } "
                 "types { id: 2 class_name: 'X[]' superclass_id: 3 classloader_id: 1 } types { id: 3 superclass_id: 2 kind: 99 } ")
        objects = ("roots { object_ids: [1, 9, 1] root_type: 250 } objects { id: 1 type_id: 1 self_size: 18446744073709551615 reference_object_id: [1, 2, 77, 2] } "
                   "objects { id: 1 type_id: 2 } objects { id: 2 type_id: 2 self_size: 9223372036854775807 reference_field_id: [5] reference_object_id: [1, 3] } "
                   "objects { id: 3 type_id: 3 self_size: 9223372036854775807 native_allocation_registry_size_field: -1 } objects { id: 4 type_id: 44 }")
        path = self.write("forged.trace", text_format.Parse(heap % (types + objects), trace_pb2.Trace()).SerializeToString())
        for words in WHOLE_HEAP:
            self.ask(words, path)
        for verb in ("path", "paths", "object", "dominators", "find"):
            for name in ("X[]", "java.lang.Class", "id=0", "id=1", "id=4294967295", "class java.lang.Class<X>"):
                done = hprof(verb, path, name)
                self.assertIn(done.returncode, (0, 1), done.stderr)


@unittest.skipUnless(HAS_JAVA, "there is no JDK")
class LiveMachine(WithMachine, Views):
    def test_the_trace_of_a_real_heap(self):
        dump = self.path("a.hprof")
        jcmd(self.start(), "GC.heap_dump", "-overwrite", "-all", dump)
        trace = self.trace_of(dump)
        for words in WHOLE_HEAP:
            self.check_same(words, dump, trace)
        path = self.ask("path", trace, "Leaky$Entry")["path"]
        self.assertEqual([(step["class"], step["reference"]) for step in path][-2:], [("class Leaky", path[-2]["reference"]), ("Leaky$Entry", ".static chain")])
        for name in ("Leaky$Entry", "java.util.HashMap$Node[]"):
            self.check_same("find --retained", dump, trace, name)


if __name__ == "__main__":
    unittest.main()
