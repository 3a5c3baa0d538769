"""The page of objects of a managed heap, in reports and where heap_profile view answers, in a real browser."""

import gzip
import json
import pathlib
import struct
import subprocess
import tempfile
import unittest
import urllib.parse

import trace_pb2
from google.protobuf import text_format
from browser import CHROMIUM, WithPage
from hprof_dump import Dump
from profile_run import HEAP_PROFILE
from report_test import FAINT_TEXTS
from view_test import Server

HOSTILE = "<img src=x onerror=alert(1)>"
QUOTED = "O'Brien\u202e--\"<b>"
ITEMS = 150


def shown(name):
    """As pages have it."""
    return name.replace("\u202e", "\ufffd")


# By the numbers of objects: class and what their three fields hold.
OBJECTS = {0x100: ("Server", 0x200, 0x300, 0x450), 0x200: ("Cache", 0x400, 0x600, 0x701), 0x300: ("Session", 0x600, 0x800, 0xa00),
           0x500: ("Entry", 0, 0, 0), 0x501: ("Entry", 0, 0, 0), 0x502: ("Entry", 0, 0, 0), 0x600: (QUOTED, 0, 0, 0),
           0x800: (HOSTILE, 0, 0, 0), 0x900: ("Entry", 0x600, 0, 0), 0xa00: ("java.lang.ref.WeakReference", 0xb00, 0, 0), 0xb00: ("Weak", 0, 0, 0),
           **{0x1000 + i: ("Item", 0, 0, 0) for i in range(ITEMS)}}
ARRAYS = {0x400: (0x500, 0x501, 0x502), 0x450: tuple(range(0x1000, 0x1000 + ITEMS))}
# What holds what alone, with each class once: level, class and number of objects.
DOMINATORS = [(1, "Server", 1), (2, "Object[]", 1), (3, "Item", ITEMS), (2, "Cache", 1), (3, "Object[]", 1), (4, "Entry", 3), (3, "java.lang.String", 1), (4, "byte[]", 1), (2, "Session", 1),
              (3, "java.lang.ref.WeakReference", 1), (3, HOSTILE, 1), (2, shown(QUOTED), 1)]


def dump():
    """0x900 is garbage; 0x600 is held by two; 0xb00 by a weak reference only."""
    made = Dump(version="1.0.2").string(1, "referent").string(2, "first").string(3, "second").string(4, "third").string(5, "value").string(6, "coder").string(7, "hash")
    names = sorted({one[0] for one in OBJECTS.values()} | {"Object[]", "java.lang.ref.Reference", "java.lang.String"})
    classes = {name: 16 * (at + 1) for at, name in enumerate(names)}
    for name, number in classes.items():
        made.load_class(number, name)
    fields = {"java.lang.ref.Reference": [1], "java.lang.ref.WeakReference": [3, 4], "java.lang.String": [5, (6, 8), (7, 10)]}
    supers = {"java.lang.ref.WeakReference": classes["java.lang.ref.Reference"]}
    parts = [made.root(0xFF, 0x100)] + [made.class_dump(number, supers.get(name, 0), fields.get(name, [2, 3, 4])) for name, number in classes.items()]
    for number, (name, *values) in OBJECTS.items():  # the class's own fields come before those of the one above
        parts.append(made.instance(number, classes[name], *(values[1:] + values[:1] if name in supers else values)))
    parts += [made.objects(number, classes["Object[]"], *values) for number, values in ARRAYS.items()]
    parts += [made.numbers(0x700, HOSTILE.encode()), made.instance(0x701, classes["java.lang.String"], 0x700, b"\0", struct.pack(">i", -7))]
    return made.segment(*parts).end().bytes


class ObjectsTest(WithPage):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.directory = pathlib.Path(directory.name)
        cls.file = cls.directory / "a.hprof"
        cls.file.write_bytes(dump())
        cls.report = cls.directory / "report.html"
        subprocess.run([HEAP_PROFILE, "report", "-q", "-o", cls.report, cls.file], check=True)
        sql = "SELECT address, self_size, retained_size FROM heap_graph_object"
        done = subprocess.run([HEAP_PROFILE, "query", "--json", cls.file, sql], capture_output=True, text=True, check=True)
        cls.sizes = {row["address"]: row for row in json.loads(done.stdout)}

    def texts(self, selector):
        return self.page.evaluate(f"[...document.querySelectorAll({json.dumps(selector)})].map((one) => one.textContent)")

    def rows(self):
        """Of the tree, but for objects that stand for classes: level, class, objects."""
        rows = self.page.evaluate("[...document.querySelectorAll('.objects tbody tr')].map((row) => [Number(row.getAttribute('aria-level')), "
                                  "row.querySelector('.link').textContent, Number(row.cells[4].textContent)])")
        return [tuple(row) for row in rows if not row[1].startswith("java.lang.Class<")]

    def chosen(self):
        return self.page.evaluate("document.activeElement.querySelector?.('.link')?.textContent")

    def choose(self, name):
        self.page.evaluate(f"heapReport.objects.select(heapReport.objects.nodes.find((node) => heapReport.objects.name(node) === {json.dumps(name)}))")

    def open_all(self):
        """By keys, from the first row to the last."""
        self.page.key("Home")
        for _ in range(100):
            if self.page.evaluate("document.activeElement.getAttribute('aria-expanded')") == "false":
                self.page.key("ArrowRight")
            before = self.page.evaluate("document.activeElement.id")
            self.page.key("ArrowDown")
            if self.page.evaluate("document.activeElement.id") == before:
                return


@unittest.skipUnless(CHROMIUM, "chromium is not installed")
class ReportTest(ObjectsTest):
    def tearDown(self):
        self.assertEqual(self.page.complaints, [])
        self.assertEqual([url for url in self.page.requests if not url.startswith("file:///")], [])
        self.assertLessEqual(len(self.page.requests), 1)

    def open(self, hash="#page=objects"):
        self.page.open(self.report, hash)

    def test_the_tree_of_dominators_is_walked_by_keys(self):
        self.open("")
        self.page.key("g")
        self.assertEqual(self.page.evaluate("heapReport.state.page"), "objects")
        self.assertEqual(self.rows(), DOMINATORS[:1])
        self.page.key("ArrowDown")
        self.assertEqual(self.chosen(), "Server")
        self.page.key("ArrowRight")
        self.assertEqual([row for row in self.rows() if row[0] == 2], [row for row in DOMINATORS if row[0] == 2])
        self.page.key("ArrowRight")
        self.assertEqual(self.chosen(), "Object[]")
        self.page.key("ArrowDown")
        self.assertEqual(self.chosen(), "Cache")
        self.page.key("ArrowUp")
        self.assertEqual(self.chosen(), "Object[]")
        self.page.key("ArrowLeft")
        self.assertEqual(self.chosen(), "Server")
        self.page.key("ArrowLeft")
        self.assertEqual(self.rows(), DOMINATORS[:1])
        self.open_all()
        self.assertEqual(self.rows(), DOMINATORS)
        self.page.key("Home")
        self.assertEqual(self.chosen(), "Server")
        self.page.key("End")
        self.assertEqual(self.page.evaluate("document.activeElement === [...document.querySelectorAll('.objects tbody tr')].at(-1)"), True)

    def test_sizes_are_those_of_sql(self):
        self.open()
        self.open_all()
        told = self.page.evaluate("[...document.querySelectorAll('.objects tbody tr')].map((row) => [row.querySelector('.link').textContent, "
                                  "row.cells[1].title, row.cells[3].title])")
        sizes = lambda number: [f"{self.sizes[number][key]:,} bytes" for key in ("retained_size", "self_size")]
        for name, number in (("Server", 0x100), ("Cache", 0x200), ("Session", 0x300), (HOSTILE, 0x800)):
            self.assertIn([name, *sizes(number)], told)
        self.assertEqual(self.page.evaluate("heapReport.objects.tree.total()"), self.sizes[0x100]["retained_size"])

    def test_rows_say_what_they_are(self):
        self.open()
        self.open_all()
        grid = self.page.evaluate("[document.querySelector('.objects').getAttribute('role'), [...document.querySelectorAll('.objects tr[tabindex=\"0\"]')].length, "
                                  "[...document.querySelectorAll('.objects tr[aria-selected=true]')].length]")
        self.assertEqual(grid, ["treegrid", 1, 1])
        nodes = self.page.call("Accessibility.getFullAXTree")["nodes"]
        rows = [{one["name"]: one["value"]["value"] for one in node["properties"]} for node in nodes if node.get("role", {}).get("value") == "row"]
        self.assertEqual([row["level"] for row in rows if row.get("expanded")][:2], [1, 2])

    def test_a_link_restores_the_tree_and_the_search(self):
        self.open()
        self.open_all()
        rows, hash = self.rows(), self.page.evaluate("location.hash")
        self.open(hash)
        self.assertEqual(self.rows(), rows)
        self.open("#page=objects&q=/^(item|cache)$/")
        self.assertEqual([row[1:] for row in self.rows()], [("Item", ITEMS), ("Cache", 1)])
        self.assertIn("Item ← Object[] ← Server", self.texts(".objects .indent > span:last-child")[0])
        self.page.key("ArrowDown")
        self.page.key("Escape")
        self.assertEqual(self.page.evaluate("heapReport.state.query"), "")
        self.open("#page=objects&q=nothing-of-it")
        self.assertIn("No class is found", self.texts("#empty")[0])
        self.open("#page=objects&q=/(/&open=x.<.999999999&at=o1,o2")
        self.assertEqual(self.rows(), DOMINATORS[:1])

    def test_a_class_leads_to_its_place_in_the_flame_graph(self):
        self.open()
        self.open_all()
        for lead in (lambda: self.page.key("Enter"), lambda: self.page.evaluate("document.querySelector('.objects [aria-selected=true] .link').click()"),
                     lambda: self.page.evaluate("[...document.querySelectorAll('.toolbar button')].find((one) => one.textContent.includes('flame')).click()")):
            self.page.evaluate("heapReport.set({page: 'objects', zoom: 0})")
            self.choose("Entry")
            lead()
            self.assertEqual(self.page.evaluate("[heapReport.state.page, heapReport.heap.name, ...heapReport.tree.pathOf(heapReport.state.zoom).map((node) => "
                                                "heapReport.report.functions.name(heapReport.tree.functions[node]))]"),
                             ["flame", "managed, by dominator (retained)", "Server", "Cache", "Object[]", "Entry"])

    def test_paths_are_copied(self):
        self.open()
        self.open_all()
        self.page.evaluate("heapReport.copy = (text) => { globalThis.copied = text; }")
        self.choose("Entry")
        self.page.key("c")
        size = sum(self.sizes[number]["self_size"] for number in (0x500, 0x501, 0x502))
        self.assertRegex(self.page.evaluate("copied"), rf"\A{size:,} bytes retained \([\d.]+%\), 3 objects\nEntry\nObject\[\]\nCache\nServer\n\Z")
        self.assertEqual(self.texts("#object-path"), ["Entry ← Object[] ← Cache ← Server"])

    def test_names_never_become_html(self):
        self.open()
        self.open_all()
        self.assertEqual(self.page.evaluate("[document.querySelectorAll('img, iframe').length, document.scripts.length]"), [0, 1])
        self.assertNotIn("\u202e", self.page.evaluate("document.body.textContent"))

    def test_the_page_is_small_with_objects(self):
        page = self.report.read_bytes()
        at = page.index(b"application/octet-stream\">")
        itself = page[:at] + page[page.index(b"</script>", at):]
        self.assertLessEqual(len(itself), 132_000)
        self.assertLessEqual(len(gzip.compress(itself, 9)), 47_000)

    def test_both_heaps_of_a_graph_have_the_page_and_others_do_not(self):
        for moment in (0, 1):
            self.open(f"#page=objects&moment={moment}")
            self.assertEqual(self.rows(), DOMINATORS[:1])
        folded = self.directory / "a.folded"
        folded.write_text("main;f 100\n")
        both, alone = self.directory / "both.html", self.directory / "alone.html"
        subprocess.run([HEAP_PROFILE, "report", "-q", "-o", both, folded, self.file], check=True)
        subprocess.run([HEAP_PROFILE, "report", "-q", "-o", alone, folded], check=True)
        self.page.open(both, "#page=objects&moment=0")
        self.assertIn("This heap has no objects", self.texts("#empty")[0])
        self.page.evaluate("document.querySelector('#empty button').click()")
        self.assertEqual(self.rows(), DOMINATORS[:1])
        self.page.open(alone, "#page=objects")
        self.assertEqual(self.page.evaluate("heapReport.state.page"), "overview")
        self.assertNotIn("treegrid", alone.read_text(), "it has not the code either")

    def test_wide_levels_are_bounded(self):
        made = Dump(version="1.0.2").string(2, "next")
        for i in range(130):
            made.load_class(16 * (i + 1), f"Class{i}")
        made.segment(*(made.class_dump(16 * (i + 1), 0, [2]) for i in range(130)), *(made.root(0xFF, 0x10000 + i) for i in range(130)),
                     *(made.instance(0x10000 + i, 16 * (i + 1), 0) for i in range(130))).end()
        (self.directory / "wide.hprof").write_bytes(made.bytes)
        subprocess.run([HEAP_PROFILE, "report", "-q", "-o", self.directory / "wide.html", self.directory / "wide.hprof"], check=True)
        self.page.open(self.directory / "wide.html", "#page=objects")
        self.assertEqual(len(self.texts(".objects tbody tr")), 101)
        self.assertRegex(self.texts(".objects tbody tr")[-1], r"\Aand \d+ more; a search finds them")

    def test_texts_can_be_read_at_every_width(self):
        for theme in ("light", "dark"):
            self.page.theme(theme)
            for width in (1600, 1000, 420):
                self.page.size(width, 800)
                self.open()
                self.open_all()
                self.assertEqual(self.page.evaluate(FAINT_TEXTS), [], theme)
                self.assertLessEqual(self.page.evaluate("document.documentElement.scrollWidth"), width)


@unittest.skipUnless(CHROMIUM, "chromium is not installed")
class ViewTest(ObjectsTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = Server(cls.file)
        cls.addClassCleanup(cls.server.end)

    def tearDown(self):
        self.assertEqual(self.page.complaints, [])
        self.assertEqual([url for url in self.page.requests if not url.startswith((self.server.url, "blob:" + self.server.url[:20]))], [])

    def answered(self):
        self.page.wait("document.getElementById('inspected') !== null && document.querySelector('#inspected .card') !== null && "
                       "!document.getElementById('inspected').textContent.includes('Asking')")
        self.page.painted()

    def open(self, hash="#page=objects"):
        self.page.open(self.server.url, hash)

    def open_object(self, number):
        """By its class, as people do."""
        self.open("#page=objects&q=" + urllib.parse.quote(shown(OBJECTS[number][0])) if number in OBJECTS else "#page=objects")
        if number in ARRAYS:
            self.open_all()
            at = self.page.evaluate("heapReport.objects.nodes.find((node) => heapReport.objects.name(node) === 'Object[]')")
            self.page.evaluate(f"heapReport.objects.select({at})")
        else:
            self.page.key("ArrowDown")
        self.page.key("Enter")
        self.answered()
        self.press(hex(number))

    def press(self, text):
        self.page.evaluate(f"[...document.querySelectorAll('#inspected button')].find((one) => one.textContent === {json.dumps(text)}).click()")
        self.answered()

    def table(self, title):
        """Rows of a card's table as texts."""
        return self.page.evaluate("(() => { const card = [...document.querySelectorAll('#inspected .card')].find((one) => "
                                  f"one.querySelector('h2').textContent.startsWith({json.dumps(title)})); "
                                  "return [...card.querySelectorAll('tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent)); })()")

    def test_objects_of_a_class_those_that_retain_most_first(self):
        self.open()
        self.open_all()
        self.choose("Item")
        self.page.key("Enter")
        self.answered()
        self.assertIn(f"{ITEMS} objects of ", self.texts("#of-class")[0])
        self.assertIn("the 100 that retain most", self.texts("#of-class")[0])
        self.assertEqual(len(self.texts("#inspected tbody tr")), 100)
        self.page.key("Escape")
        self.assertEqual(self.rows(), DOMINATORS, "as it was left")

    def test_an_object_has_its_references_both_ways_and_its_path(self):
        self.open_object(0x600)
        facts = dict(zip(self.texts(".facts dt"), self.texts(".facts dd")))
        self.assertEqual(facts["Address"], "0x600")
        self.assertEqual(facts["Itself"], f"{self.sizes[0x600]['self_size']:,} bytes")
        self.assertTrue(facts["Retained"].startswith(f"{self.sizes[0x600]['retained_size']:,} bytes"), facts)
        self.assertEqual(facts["From a root"], "2 references")
        path = self.table("Nearest path")
        self.assertEqual([row[1] for row in path], ["0x100", "0x200", "0x600"])
        self.assertEqual([row[0] for row in path], ["ROOT_UNKNOWN", "Server.first", "Cache.second"])
        self.assertEqual([(row[1], row[0]) for row in self.table("It is referred to by")],
                         [("0x200", "Cache.second"), ("0x300", "Session.first"), ("0x900", "Entry.first")])
        self.assertEqual(self.table("It is referred to by")[2][4], "unreachable")
        (to_class,) = self.table("It refers to")
        self.assertEqual((to_class[0], to_class[2]), ("<class>", f"java.lang.Class<{shown(QUOTED)}>"))

    def test_one_goes_on_from_object_to_object_and_back(self):
        self.open_object(0x100)
        self.press("0x200")
        self.assertEqual(self.texts("#inspected h2")[0], "Cache 0x200")
        self.press("0x400")
        rows = self.table("It refers to")
        self.assertEqual([row[1] for row in rows if row[2] == "Entry"], ["0x500", "0x501", "0x502"])
        self.press("Entry")
        self.assertEqual(self.page.evaluate("document.getElementById('of-class').dataset.value"), "4")
        hash = self.page.evaluate("location.hash")
        self.page.key("Escape")
        self.answered()
        self.assertEqual(self.texts("#inspected h2")[0], "Object[] 0x400")
        self.page.evaluate("history.back()")  # the browser's own has the last step
        self.page.wait("heapReport.state.at.split(',').length === 5")
        self.open(hash)
        self.answered()
        self.assertEqual(self.page.evaluate("document.getElementById('of-class').dataset.value"), "4")
        self.page.evaluate("document.querySelector('.crumbs button').click()")
        self.assertEqual(self.page.evaluate("heapReport.state.at"), "")

    def test_a_search_leads_back_to_the_tree(self):
        self.open_object(0x200)
        self.page.evaluate("heapReport.search.value = ''")
        self.page.key("/")
        self.page.type("sess")
        self.assertEqual([row[1] for row in self.rows()], ["Session"])
        self.assertTrue(self.page.evaluate("document.activeElement === heapReport.search"))
        self.page.evaluate("history.back()")
        self.page.wait("document.getElementById('inspected') !== null")

    def test_arrows_walk_through_links(self):
        self.open_object(0x200)
        links = self.page.evaluate("[...document.querySelectorAll('#inspected button')].length")
        self.assertGreater(links, 4)
        for at, key in ((0, "ArrowDown"), (1, "ArrowDown"), (0, "ArrowUp")):
            self.page.key(key)
            self.assertEqual(self.page.evaluate("[...document.querySelectorAll('#inspected button')].indexOf(document.activeElement)"), at)
        self.page.key("Enter")
        self.answered()
        self.assertEqual(self.texts("#inspected h2")[0], "Cache", "the first link is its class")

    def test_what_is_not_held_has_no_path(self):
        self.open_object(0x900)
        self.assertIn("unreachable", self.texts(".facts")[0])
        self.assertEqual(self.table("Nearest path"), [])
        self.open_object(0xa00)
        self.press("0xb00")
        self.assertIn("unreachable", self.texts(".facts")[0], "a weak reference holds nothing")
        self.open("#page=objects&at=o999999,x,o999999999999")
        self.answered()
        self.assertIn("There is no object 999999", self.texts("#inspected")[0])

    def test_hostile_names_are_asked_for_and_shown(self):
        for number, name in ((0x800, HOSTILE), (0x600, QUOTED)):
            self.open_object(number)
            self.assertIn(shown(name), self.texts("#inspected h2")[0])
            self.press(shown(name))
            self.assertEqual(self.page.evaluate("document.getElementById('of-class').dataset.value"), "1")
            self.assertEqual(self.page.evaluate("[document.querySelectorAll('img, iframe').length, document.scripts.length]"), [0, 1])
            self.assertNotIn("\u202e", self.page.evaluate("document.body.textContent"))

    def test_values_are_shown(self):
        self.open_object(0x200)
        self.assertIn("No numbers and texts", self.texts("#inspected")[0])
        self.press("0x701")
        self.press("0x700")
        self.assertIn(f"byte[{len(HOSTILE)}]", self.texts("#inspected")[0])
        self.page.key("Escape")
        self.answered()
        self.assertEqual(self.page.evaluate("document.querySelectorAll('img').length"), 0)
        self.assertEqual(self.texts("#inspected .value"), [f"“{HOSTILE}”"])
        self.assertEqual(self.table("Values"), [["java.lang.String.coder", "byte", "0"], ["java.lang.String.hash", "int", "-7"]])

    def test_of_a_long_path_both_ends_are_shown(self):
        made = Dump(version="1.0.2").string(2, "next").load_class(16, "Node")
        made.segment(made.root(0xFF, 0x1000), made.class_dump(16, 0, [2]),
                     *(made.instance(0x1000 + i, 16, 0x1001 + i if i < 129 else 0) for i in range(130))).end()
        (self.directory / "long.hprof").write_bytes(made.bytes)
        server = Server(self.directory / "long.hprof")
        self.addCleanup(server.end)
        last = server.sql("SELECT id FROM heap_graph_object WHERE address = 0x1000 + 129")[1]["rows"][0][0]
        self.page.open(server.url, f"#page=objects&at=o{last}")
        self.answered()
        path = self.table("Nearest path")
        self.assertEqual([(row[0], row[1]) for row in (path[0], path[49], path[50], path[51], path[-1])],
                         [("ROOT_UNKNOWN", "0x1000"), ("Node.next", "0x1031"), ("… 30 more objects", ""), ("Node.next", "0x1050"), ("Node.next", "0x1081")])
        self.assertEqual(self.page.complaints, [])
        self.page.requests.clear()

    def test_objects_are_those_of_the_dump_that_is_chosen(self):
        made = Dump(version="1.0.2").string(2, "next").load_class(16, "First").load_class(32, "Second")
        made.segment(made.root(0xFF, 0x100), made.class_dump(16, 0, [2]), made.instance(0x100, 16, 0)).end()
        made.segment(made.class_dump(32, 0, [2]), made.instance(0x200, 32, 0)).end()  # nothing holds it
        (self.directory / "two.hprof").write_bytes(made.bytes)
        server = Server(self.directory / "two.hprof")
        self.addCleanup(server.end)
        first = server.sql("SELECT id FROM heap_graph_object WHERE address = 0x100")[1]["rows"][0][0]
        self.page.open(server.url)
        moments = self.page.evaluate("heapReport.allMoments.filter((one) => one.dump.heap_name.includes('retained')).sort((a, b) => a.dump.id - b.dump.id)"
                                     ".map((one) => one.index)")
        self.page.open(server.url, f"#page=objects&moment={moments[1]}")
        self.assertEqual(self.texts("#empty h2"), ["Nothing is held"])
        for moment, is_other in zip(moments, (False, True)):
            self.page.open(server.url, f"#page=objects&moment={moment}&at=o{first}")
            self.answered()
            self.assertEqual("of another dump" in self.texts("#inspected")[0], is_other)
            self.assertEqual("100% of all" in self.texts("#inspected")[0], not is_other)
        self.page.requests.clear()

    def test_objects_of_a_trace_have_no_addresses(self):
        text = (pathlib.Path(__file__).parent.parent / "queries" / "heap_graph_interleaved" / "in.textproto").read_text()
        (self.directory / "graph.trace").write_bytes(text_format.Parse(text, trace_pb2.Trace()).SerializeToString())
        server = Server(self.directory / "graph.trace")
        self.addCleanup(server.end)
        self.page.open(server.url, "#page=objects&at=o0")
        self.answered()
        self.assertEqual(self.texts("#inspected h2")[0], "Node #0")
        self.assertEqual([row[:2] for row in self.table("It refers to")], [["Node.next", "#1"], ["Node.next", "#2"], ["Node.next", "null"]])
        self.page.requests.clear()

    def test_many_references_are_bounded_and_counted(self):
        self.open_object(0x1000)
        self.press("0x450")
        self.assertEqual(len(self.table("It refers to")), 100)
        titles = self.texts("#inspected h2")
        self.assertTrue(any(title.startswith("It refers to (15") for title in titles), titles)

    def test_a_server_that_has_ended_is_said(self):
        server = Server(self.file)
        self.page.open(server.url, "#page=objects")
        server.end()
        self.page.key("ArrowDown")
        self.page.key("Enter")
        self.answered()
        self.assertIn("The server does not answer", self.texts("#inspected")[0])
        self.page.complaints.clear()  # the browser's own line about the failure
        self.page.requests.clear()

    def test_texts_can_be_read_at_every_width(self):
        for theme in ("light", "dark"):
            self.page.theme(theme)
            for width in (1600, 1000, 420):
                self.page.size(width, 800)
                self.open_object(0x600)
                self.assertEqual(self.page.evaluate(FAINT_TEXTS), [], theme)
                self.assertLessEqual(self.page.evaluate("document.documentElement.scrollWidth"), width)


if __name__ == "__main__":
    unittest.main()
