"""heap_profile hprof and hprof-conv on made dumps, on Android's own converter's results, and on a live Java VM."""

import csv
import gzip
import io
import json
import os
import re
import shlex
import subprocess
import unittest

from hprof_dump import Dump, head_and_tail, phone
from java_machine import WithMachine, jcmd, machines_histogram
from profile_run import HEAP_PROFILE
from with_directory import WithDirectory

COMPAT = os.environ["COMPAT"]
DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs")
ANDROIDS = "/usr/lib/android-sdk/platform-tools/hprof-conv"


def hprof(*arguments, **kwargs):
    return subprocess.run([HEAP_PROFILE, "hprof", *arguments], capture_output=True, text=True, timeout=120, **kwargs)


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
        for first, second, cause in [
                (self.tail, self.tail, "both are tails"),
                (self.head, self.head, "both begin as a head"),
                (self.write("merged", self.whole), self.tail, "merged or whole"),
                (self.head, self.write("text", b"hello"), "neither a head nor a tail"),
                (self.write("other", other), self.tail, "of different dumps")]:
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

    def test_wrong_command_lines(self):
        path = self.write("a.hprof", phone())
        for arguments, code, cause in [
                (["histogram"], 2, "no file is named"), (["compare", path], 2, "two files are needed"),
                (["compare", path, path, "--dump", "1"], 2, "two files are needed"), (["compare", self.path("none"), path], 1, "No such"),
                (["leaks", path, "x"], 2, "of no single object"), (["path", path], 2, "one object is needed"),
                (["shrink", path], 2, "there is no such verb"), (["histogram", "--fast", path], 2, "none of this name"),
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
        head, tail = head_and_tail(phone())
        self.write("heap-dump-tm1-pid2.hprof-head", head)
        self.write("heap-dump-tm1-pid2.hprof", tail)
        commands = [line for block in blocks for line in block.splitlines()
                    if line.startswith(("heap_profile hprof ", "heap_profile query ", "hprof-conv "))]
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


OF_CLASSES = ("SELECT c.name AS class, count(*) AS objects, sum(self_size) AS bytes FROM heap_graph_object o "
              "JOIN heap_graph_class c ON c.id = type_id GROUP BY 1")


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

    def test_values_of_fields_are_not_there_and_said_to_be(self):
        done = subprocess.run([HEAP_PROFILE, "query", self.write("a.hprof", phone()), "SELECT * FROM heap_graph_primitive"],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("are not read from heap dumps of Java", done.stderr)

    def test_no_report_is_made_of_it(self):
        done = subprocess.run([HEAP_PROFILE, "report", "-o", self.path("r.html"), self.write("a.hprof", phone())],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("cannot make a report of ", done.stderr)
        self.assertIn(": it is a heap dump of Java; heap_profile hprof leaks FILE and heap_profile query FILE show what is in it",
                      done.stderr)
        self.assertEqual(os.listdir(self.directory), ["a.hprof"])


class LiveMachine(WithMachine):
    def histogram(self, *arguments):
        done = hprof("histogram", "--json", "--top", "0", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_the_histogram_is_the_machines_own(self):
        for flags in ([], ["-XX:-UseCompressedOops"], ["-XX:-UseCompressedOops", "-XX:-UseCompressedClassPointers"]):
            process = self.start(*flags)
            before = machines_histogram(process)
            jcmd(process, "GC.heap_dump", "-overwrite", self.path("a.hprof"))
            after = machines_histogram(process)
            ours = {row["class"]: (row["objects"], row["bytes"]) for row in self.histogram(self.path("a.hprof"))["classes"]}
            # Objects for classes that are loaded and not linked are not in a dump.
            stable = {name: row for name, row in before.items() if after.get(name) == row and name != "java.lang.Class"}
            self.assertGreater(len(stable), 150)
            self.assertEqual({name: (ours.get(name), row) for name, row in stable.items() if ours.get(name) != row}, {}, flags)

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

    def test_the_machines_own_compression(self):
        process = self.start()
        jcmd(process, "GC.heap_dump", "-overwrite", "-gz=1", self.path("a.hprof.gz"))
        jcmd(process, "GC.heap_dump", "-overwrite", self.path("a.hprof"))
        entries = [next(row for row in self.histogram(self.path(name))["classes"] if row["class"] == "Leaky$Entry")
                   for name in ("a.hprof", "a.hprof.gz")]
        self.assertEqual(entries[0], entries[1])


if __name__ == "__main__":
    unittest.main()
