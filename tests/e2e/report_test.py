"""The page that recordings leave, in a real browser."""

import contextlib
import csv
import gzip
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import unittest
import xml.etree.ElementTree

import pprof_pb2
import trace_pb2
from google.protobuf import text_format
from browser import CHROMIUM, WithPage
from hprof_dump import Dump
from profile_run import HEAP_PROFILE, program
from with_directory import WithRecording

TRACES = pathlib.Path(__file__).parent.parent / "data" / "traces"
VIEWS = ["space", "alloc_space", "objects", "alloc_objects"]
HOSTILE = ["</script><script>alert(1)</script>", "<img src=x onerror=alert(2)>", "a\u202eb", "__proto__"]


def sql_text(text):
    return "'" + text.replace("'", "''") + "'"


def report(file, output, *options):
    subprocess.run([HEAP_PROFILE, "report", *options, "-o", output, "--", file], capture_output=True, text=True,
                   check=True)


def fed_until_a_child_reads(fifo, pid):
    """Gives a mapping file to whoever reads the FIFO, until that is a child of the process: a file that it waits for."""
    while True:
        writer = awaited_writer(fifo)
        with open(f"/proc/{pid}/task/{pid}/children") as children:
            if children.read():
                return open(writer, "wb")
        with contextlib.suppress(BrokenPipeError):  # it has read to the end already, and was slow to close
            os.write(writer, b"a.B -> c:\n")
        os.close(writer)


def awaited_writer(fifo):
    """A descriptor for writing, once the FIFO is there and somebody reads it."""
    end = time.monotonic() + 60
    while True:
        try:
            return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # not there, or nobody reads
            if time.monotonic() > end:
                raise
            time.sleep(0.01)


PAGES = "ofuadlshriq"  # by their keys
# What comes before a key (keys, or what is done by a script), and what is true after it and not before.
STATE = "heapReport.state."
FOUND = "js:heapReport.set({query: 'leaks'})"
FOUND_SELECTED = "heapReport.found?.nodes.includes(heapReport.flame.selected) === true"
# The first two callees of one function.
SIBLINGS = """js:globalThis.siblings = (() => {
  const { parents, count } = heapReport.tree, first = new Map();
  for (let node = 1; node < count; ++node) {
    if (first.has(parents[node])) return [first.get(parents[node]), node];
    first.set(parents[node], node);
  }
})()"""
KEYS = {
    "1": ("2", STATE + "view === 'space'"), "2": ("", STATE + "view === 'alloc_space'"),
    "3": ("", STATE + "view === 'objects'"), "4": ("", STATE + "view === 'alloc_objects'"),
    "p": ("e", "heapReport.moment === heapReport.heap.peak"), "e": ("p", "heapReport.moment === heapReport.heap.end"),
    "[": (["]"], "heapReport.moment === heapReport.moments[0]"), "]": (["["], "heapReport.moment === heapReport.moments.at(-1)"),
    "b": ("", STATE + "isInverted"), "/": ("", "document.activeElement === heapReport.search"),
    "Enter": (["ArrowDown", "ArrowDown"], STATE + "zoom > 0"), "Escape": (["ArrowDown", "ArrowDown", "Enter"], STATE + "zoom === 0"),
    "ArrowDown": (["ArrowDown"], "heapReport.flame.selected > 0"), "ArrowUp": (["ArrowDown", "ArrowDown"], "heapReport.flame.selected === 0"),
    "ArrowRight": ([SIBLINGS, "js:heapReport.goTo(siblings[0])"], "heapReport.flame.selected === siblings[1]"),
    "ArrowLeft": ([SIBLINGS, "js:heapReport.goTo(siblings[1])"], "heapReport.flame.selected === siblings[0]"),
    "n": ([FOUND], FOUND_SELECTED), "N": ([FOUND], FOUND_SELECTED),
    "m": (["ArrowDown", "ArrowDown"], "document.querySelector('.menu') !== null"),
    "c": (["ArrowDown", "ArrowDown", "js:heapReport.copy = (text) => { globalThis.copied = text; }"], "globalThis.copied?.includes('bytes')"),
    "x": ("", "document.querySelector('dialog [data-export]') !== null"), "?": ("", "document.querySelector('dialog.help') !== null"),
    "t": ("", "document.documentElement.dataset.theme === 'dark'"),
    **{key: ("f" if key != "f" else "o", f"heapReport.pageOf('{key}') === {STATE}page") for key in PAGES},
}
# Elements whose own text is hard to read, by the contrast of WCAG; what cannot be used may be faint.
FAINT_TEXTS = """(() => {
  const channels = (text) => text.match(/[\\d.]+/g).map(Number);
  const luminance = (color) => {
    const [r, g, b] = color.map((one) => (one / 255 <= 0.03928 ? one / 255 / 12.92 : ((one / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const back = (element) => {
    for (; element; element = element.parentElement) {
      const color = channels(getComputedStyle(element).backgroundColor);
      if (color.length === 3) return color;
    }
    return [255, 255, 255];
  };
  const faint = [];
  for (const element of document.querySelectorAll("#app *")) {
    const text = [...element.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data.trim()).join("");
    if (!text || element.disabled || element.getClientRects().length === 0) continue;
    const [one, other] = [luminance(channels(getComputedStyle(element).color)), luminance(back(element))];
    const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (contrast < 4.5) faint.push(`${element.tagName}.${element.className} "${text.slice(0, 30)}" ${contrast.toFixed(2)}`);
  }
  return faint;
})()"""
# As red, green and blue.
CHANGE_COLORS = """(() => {
  const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  return [GREW, GREW_PARTLY, SHRANK, SHRANK_PARTLY].map((color) => {
    context.fillStyle = heapReport.flame.palette.boxes[color];
    context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
  });
})()"""
# Of linear light: what is seen without one kind of cones (Machado, Oliveira, Fernandes 2009).
EYES = {
    "all cones": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
}


def color_distance(one, other, eyes):
    """CIE 1976, of colours as those eyes see them."""
    def lab(color):
        linear = [c / 255 / 12.92 if c / 255 <= 0.04045 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in color]
        seen = [max(0, sum(weight * part for weight, part in zip(row, linear))) for row in eyes]
        xyz = [sum(weight * part for weight, part in zip(row, seen)) / white for row, white in
               zip(((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505)), (0.9505, 1, 1.089))]
        x, y, z = (part ** (1 / 3) if part > 0.008856 else 7.787 * part + 16 / 116 for part in xyz)
        return 116 * y - 16, 500 * (x - y), 200 * (y - z)
    return sum((a - b) ** 2 for a, b in zip(lab(one), lab(other))) ** 0.5


class FilesTest(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.directory)

    def record(self, *options):
        out = self.directory / "out"
        done = subprocess.run([HEAP_PROFILE, "-i", "1", "-o", out, *options, "--", program("known_stacks")],
                              capture_output=True, text=True, check=True)
        return out, done.stderr

    def test_every_recording_leaves_a_page_and_names_it_last(self):
        out, stderr = self.record()
        self.assertEqual(stderr.splitlines()[-1], f"  report  {out}/report.html  (open in a browser)")
        self.assertIn("default-src 'none'", (out / "report.html").read_text())

    def test_none_is_made_when_none_is_wanted(self):
        out, stderr = self.record("--no-report")
        self.assertFalse((out / "report.html").exists())
        self.assertNotIn("report.html", stderr)

    def test_a_page_that_cannot_be_made_is_said_and_the_trace_is_there(self):
        out = self.directory / "out"
        done = subprocess.run([HEAP_PROFILE, "-i", "1", "-o", out, "--", "sh", "-c",
                               f"mkdir {out}/report.html && exec {program('known_stacks')}"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1, "the program has ended with 0")
        self.assertIn("heap_profile: cannot make the report: ", done.stderr)
        self.assertIn(f"heap_profile report {out}/raw-trace", done.stderr)
        subprocess.run([HEAP_PROFILE, "query", out / "raw-trace", "select 1 from heap_dump"], capture_output=True,
                       check=True)

    def test_a_page_that_takes_long_is_given_up_on_request(self):
        for number in (signal.SIGINT, signal.SIGQUIT):
            with self.subTest(number=number), tempfile.TemporaryDirectory() as directory:
                # Where nothing was recorded, a process of its own makes the page. It waits for a mapping file without an end.
                fifo = pathlib.Path(directory) / "mapping"
                os.mkfifo(fifo)
                process = subprocess.Popen(
                    [HEAP_PROFILE, "-q", "--heaps", "of.nobody", "-o", f"{directory}/out", "--", "true"],
                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                    env={**os.environ, "PERFETTO_PROGUARD_MAP": str(fifo)},
                    preexec_fn=lambda number=number: signal.signal(number, signal.SIG_DFL))
                with fed_until_a_child_reads(fifo, process.pid):
                    process.send_signal(number)
                    stderr = process.communicate(timeout=30)[1]
                self.assertIn("it was interrupted; the trace is complete", stderr)
                self.assertEqual(process.returncode, 0, "it is the program's")

    def test_what_is_no_profile_makes_no_page(self):
        broken = self.directory / "broken"
        broken.write_bytes(b"no profile at all")
        done = subprocess.run([HEAP_PROFILE, "report", "-o", self.directory / "page.html", broken],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("its format is not known", done.stderr)
        self.assertFalse((self.directory / "page.html").exists())

    def test_a_page_that_is_there_is_not_replaced_unasked(self):
        (self.directory / "report.html").write_text("mine")
        folded = self.directory / "a.folded"
        folded.write_text("main;f 10\n")
        done = subprocess.run([HEAP_PROFILE, "report", folded], capture_output=True, text=True, check=False,
                              cwd=self.directory)
        self.assertEqual(done.returncode, 2)
        self.assertIn("it is there already", done.stderr)
        self.assertEqual((self.directory / "report.html").read_text(), "mine")


@unittest.skipUnless(CHROMIUM, "chromium is not installed")
class BrowserTest(WithPage, WithRecording):
    OPTIONS = ()

    def open(self, path, hash=""):
        self.page.open(path, hash)

    def tearDown(self):
        self.assertEqual(self.page.complaints, [])
        self.assertEqual([url for url in self.page.requests if not url.startswith("file:///")], [])
        self.assertLessEqual(len(self.page.requests), 1)

    def folded(self, text, name="stacks"):
        file = self.directory / (name + ".folded")
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        page = self.directory / (name + ".html")
        report(file, page)
        return page

    def textproto(self, text, name="trace"):
        """Path of a trace, and of its page."""
        file, page = self.directory / name, self.directory / (name + ".html")
        file.write_bytes(text_format.Parse(text, trace_pb2.Trace()).SerializeToString())
        report(file, page)
        return file, page

    def query_file(self, file, sql):
        done = subprocess.run([HEAP_PROFILE, "query", "--json", file, sql], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    def query(self, sql):
        return self.query_file(self.trace, sql)

    def total(self):
        return int(self.page.evaluate("document.getElementById('total').dataset.value"))

    def test_totals_are_those_of_sql_in_all_views(self):
        self.open(self.trace.parent / "report.html", "#moment=0")
        for number, view in enumerate(VIEWS, 1):
            self.page.key(str(number))
            (row,) = self.query(f"select sum(self) as total from flamegraph(0, '{view}')")
            self.assertEqual(self.total(), row["total"], view)

    def test_functions_are_those_of_sql(self):
        self.open(self.trace.parent / "report.html", "#moment=0&page=functions&filters=none")
        shown = self.page.evaluate("[...document.querySelectorAll('tbody tr')].map((row) => [row.cells[4].textContent, "
                                   "row.cells[0].title, row.cells[2].title])")
        exactly = "{:,} bytes".format
        told = self.query("select iif(name in ('', 'unknown'), '[' || replace(mapping_name, rtrim(mapping_name, replace("
                          "mapping_name, '/', '')), '') || ']', name) as name, self, cumulative "
                          "from top('space', 100000, 0) where cumulative != 0")
        self.assertEqual(sorted(map(tuple, shown)),
                         sorted((row["name"], exactly(row["self"]), exactly(row["cumulative"])) for row in told))

    def test_functions_and_callers_are_those_of_filtered_stacks(self):
        page = self.folded("main;load;parse 70\nmain;load 20\nmain;save 10\nmain;std::vector<int>::push_back 5\n")
        rows = lambda: self.page.evaluate("[...document.querySelectorAll('#page tbody tr')].map((row) => "
                                          "[row.cells[4].textContent, row.cells[0].title, row.cells[2].title])")
        table = lambda **figures: sorted([name, f"{own} bytes", f"{total} bytes"] for name, (own, total) in figures.items())
        filters = lambda kind, text: "#page=functions&filters=" + json.dumps([{"kind": kind, "text": text, "exact": True}])
        for kind, text, told in (("keep", "parse", {"main": (0, 70), "load": (0, 70), "parse": (70, 70)}),
                                 ("merge", "load", {"main": (20, 105), "parse": (70, 70), "save": (10, 10), "std::vector<int>::push_back": (5, 5)}),
                                 ("from", "load", {"load": (20, 90), "parse": (70, 70)})):
            self.open(page, filters(kind, text))
            self.assertEqual(sorted(rows()), table(**told), kind)
            self.assertEqual(len(list(csv.reader(self.saved("csv").read_text().splitlines()))), 1 + len(told), kind)
            self.page.key("b")  # the direction is the flame graph's alone
            self.page.key("u")
            self.assertEqual(sorted(rows()), table(**told), kind)
        self.open(page, filters("hide", "load"))
        self.page.evaluate("heapReport.set({page: 'callers', pivot: heapReport.report.functions.rowOf('main')})")
        around = lambda: self.page.evaluate("document.getElementById('around').dataset.value")
        self.assertEqual(around(), "15")
        self.page.evaluate("heapReport.set({pivot: heapReport.report.functions.rowOf('load')})")
        self.assertEqual(around(), "0")
        self.assertIn("The filters leave nothing of it", self.page.evaluate("document.getElementById('page').textContent"))
        self.page.evaluate("document.querySelector('.chip button').focus()")
        self.page.key("Enter")
        self.assertEqual(around(), "90")
        self.open(page, "#page=functions")
        self.assertNotIn("push_back", str(rows()), "containers are merged from the start, as in the flame graph")

    def test_callers_are_those_of_sql(self):
        self.open(self.trace.parent / "report.html", "#moment=0&page=functions&sort=name&filters=none")
        names = self.page.evaluate("[...document.querySelectorAll('td .link')].map((one) => one.textContent)")
        self.assertGreater(len(names), 10)
        for i, name in enumerate(names):
            if name.startswith("["):
                continue  # by which SQL does not find it
            view, column = (("space", "size"), ("alloc_objects", "alloc_count"))[i % 2]
            self.page.evaluate(f"heapReport.set({{view: '{view}', page: 'functions', sort: 'name'}})")
            self.page.evaluate(f"[...document.querySelectorAll('td .link')].find((one) => one.textContent === {json.dumps(name)}).click()")
            self.assertEqual(self.page.evaluate("document.getElementById('pivot').textContent"), name)
            shown = self.page.evaluate("[...document.querySelectorAll('.even section:first-child tr')].map((row) => "
                                       "[row.cells[2].textContent, Number(row.cells[0].title.replace(/[^0-9]/g, ''))])")
            told = self.query("select iif(name is null, '(nobody: it is outermost)', iif(name in ('', 'unknown'), '[' || "
                              "replace(mapping_name, rtrim(mapping_name, replace(mapping_name, '/', '')), '') || ']', name)) as "
                              f"name, {column} as value from callers({sql_text(name)}, 0) where {column} != 0")
            self.assertEqual(sorted(map(tuple, shown)), sorted((row["name"], row["value"]) for row in told), name)

    def test_recursion_is_counted_once_around_a_function(self):
        self.open(self.folded("main;f;g;f;leaf 10\nmain;f;leaf 5\nother;g;f 7\nmain;h 100\n"), "#page=functions")
        self.page.evaluate("[...document.querySelectorAll('td .link')].find((one) => one.textContent === 'f').click()")
        rows = lambda side: self.page.evaluate("[...document.querySelectorAll('.even section')]"
                                               f"[{side}].innerText.replace(/\\t/g, ' ').split('\\n').slice(1)")
        self.assertEqual(rows(0), ["17 B 77% g", "15 B 68% main"])
        self.assertEqual(rows(1), ["15 B 68% leaf", "10 B 45% g", "7 B 32% (itself)"])
        self.assertEqual(self.page.evaluate("document.getElementById('around').dataset.value"), "22")
        around = "heapReport.graphsAround.{}.tree"
        for side in ("callers", "callees"):
            self.assertEqual(self.page.evaluate(around.format(side) + ".total()"), 22, side)

    def test_keys_and_clicks_walk_from_function_to_function(self):
        self.open(self.folded("main;load;parse 70\nmain;load 20\nmain;save 10\n"), "#page=flame")
        pivot = lambda: self.page.evaluate("document.getElementById('pivot').textContent")
        for key in ("ArrowDown", "ArrowDown", "ArrowDown", "a"):  # the root, main, load
            self.page.key(key)
        self.assertEqual(pivot(), "load")
        x, y = self.page.evaluate("(({x, y}) => [x, y])(heapReport.graphsAround.callers.element.getBoundingClientRect())")
        self.page.click(x + 20, y + 5)
        self.assertEqual(pivot(), "main", "callers are above")
        self.page.evaluate("heapReport.graphsAround.callees.element.focus()")
        for key in ("ArrowDown", "ArrowDown", "ArrowRight", "Enter"):
            self.page.key(key)
        self.assertEqual(pivot(), "save")
        self.page.evaluate("heapReport.graphsAround.callers.element.focus()")
        for key in ("ArrowUp", "ArrowUp", "Enter"):
            self.page.key(key)
        self.assertEqual(pivot(), "main", "upward")
        self.page.evaluate("history.back()")
        self.page.wait("document.getElementById('pivot').textContent === 'save'")
        link = self.page.evaluate("location.hash")
        self.open(self.directory / "stacks.html", link)
        self.assertEqual(pivot(), "save")

    def two_files(self, before, after):
        """A page of two files."""
        paths = [self.directory / "before.folded", self.directory / "after.folded"]
        for path, text in zip(paths, (before, after)):
            path.write_text(text)
        page = self.directory / "both.html"
        subprocess.run([HEAP_PROFILE, "report", "-q", "-o", page, *paths], check=True, capture_output=True)
        return page

    def changes(self):
        return [tuple(row) for row in self.page.evaluate(
            "[...document.querySelectorAll('.changes tbody tr')].map((row) => [row.cells[4].textContent, "
            "row.cells[0].textContent, row.cells[2].textContent, row.cells[3].textContent])")]

    def with_marks(self, name, statement, rounds, *options):
        """A recording of Python that does this so many times, with a dump after each."""
        out = self.directory / name
        script = ("import ctypes, subprocess\nlibc = ctypes.CDLL(None)\nmalloc, free = libc.malloc, libc.free\n"
                  "malloc.restype = ctypes.c_void_p\nfree.argtypes = [ctypes.c_void_p]\n"
                  f"for i in range({rounds}):\n {statement}\n subprocess.run([{str(HEAP_PROFILE)!r}, 'mark', str(i)], check=True)")
        subprocess.run([HEAP_PROFILE, "-q", "-i", "1", "--no-children", *options, "-o", out, "--", "/usr/bin/python3", "-c", script],
                       capture_output=True, check=True)
        return out

    def with_dumps(self, sizes, name="moments"):
        """Page of a trace with a dump a second, at which so many bytes were live."""
        text = """packet { trusted_packet_sequence_id: 1 timestamp: 1 clock_snapshot {
            clocks { clock_id: 6 timestamp: 1 } clocks { clock_id: 4 timestamp: 1 } primary_trace_clock: 6 } }
          packet { trusted_packet_sequence_id: 2 sequence_flags: 1 interned_data {
            build_ids { iid: 0 str: "" } mapping_paths { iid: 0 str: "" } function_names { iid: 0 str: "" } function_names { iid: 1 str: "main" }
            frames { iid: 1 function_name_id: 1 } callstacks { iid: 1 frame_ids: 1 } } }"""
        for at, size in enumerate(sizes):
            text += f"""packet {{ trusted_packet_sequence_id: 2 timestamp: {(at + 1) * 10**9} profile_packet {{ index: {at} process_dumps {{
              pid: 7 heap_name: "libc.malloc" timestamp: {(at + 1) * 10**9} start_timestamp: 1
              samples {{ callstack_id: 1 self_allocated: {(at << 24) + size} self_freed: {at << 24} alloc_count: {at + 2} free_count: {at + 1} }} }} }} }}"""
        return self.textproto(text, name)

    def test_moments_to_compare_are_in_the_order_of_time_and_something_is_live_at_the_first(self):
        files = [self.with_dumps(sizes, name)[0] for sizes, name in (([0, 70, 30, 50, 20], "early"), ([0, 5], "late"))]
        self.open(self.directory / "early.html", "#page=compare")
        self.assertEqual(self.chosen(), ["2.00 s: 70 B", "end: 20 B"])
        titles = lambda: self.page.evaluate("[...document.querySelector('main select').options].map((one) => one.textContent)")
        self.assertEqual(titles(), ["1.00 s: 0 B", "2.00 s: 70 B", "3.00 s: 30 B", "4.00 s: 50 B", "end: 20 B"])
        page = self.directory / "both.html"
        subprocess.run([HEAP_PROFILE, "report", "-q", "-o", page, files[1], files[0]], check=True, capture_output=True)
        self.open(page, "#page=compare")
        shown = [title.split(": ", 1)[1].rsplit(", ", 1)[1] for title in titles()]
        self.assertEqual(shown, ["1.00 s: 0 B", "end: 5 B", "1.00 s: 0 B", "2.00 s: 70 B", "3.00 s: 30 B", "4.00 s: 50 B", "end: 20 B"])
        self.assertEqual([title.rsplit(", ", 1)[1] for title in self.chosen()], ["end: 5 B", "end: 20 B"])

    def test_of_many_moments_those_are_shown_that_have_room_and_a_list_has_the_others(self):
        _, page = self.with_dumps([1 << 20] * 7 + [9 << 20] + [1 << 20] * 6)
        seen = """[...document.querySelectorAll('.moments button')].filter((one) => !one.hidden).map((one) => {
          const [box, strip] = [one, one.parentElement].map((element) => element.getBoundingClientRect());
          return [one.textContent, box.left >= strip.left - 2 && box.right <= strip.right + 2 && one.querySelector('b').scrollWidth <= one.querySelector('b').clientWidth + 1];
        })"""
        for width in (1400, 700, 420):
            self.page.size(width, 900)
            self.open(page)
            for moment in (0, 5, 7, 13):
                self.page.evaluate(f"heapReport.set({{moment: heapReport.moments[{moment}].index}})")
                shown = self.page.evaluate(seen)
                titles = [text for text, _ in shown]
                self.assertTrue(all(is_whole for _, is_whole in shown), shown)
                self.assertIn("end 1.00 MiB", titles)
                self.assertIn(self.page.evaluate("document.querySelector('.moments [aria-pressed=true]').textContent"), titles)
                more = self.page.evaluate("[...document.querySelector('[aria-label=\"More moments\"]').options].map((one) => one.textContent)")
                self.assertEqual((len(titles) + len(more) - 1, more[0]), (14, f"+{len(more) - 1}"))
            used = self.page.evaluate("[document.querySelector('.moments').getBoundingClientRect().width, document.querySelector('header').clientWidth]")
            self.assertGreater(used[0], 0.4 * used[1])
        self.page.evaluate("(() => { const more = document.querySelector('[aria-label=\"More moments\"]'); more.selectedIndex = 1; "
                           "more.dispatchEvent(new Event('change')); })()")
        self.assertEqual(self.page.evaluate("document.querySelector('.moments [aria-pressed=true]').textContent"), more[1])

    def test_wide_letters_stay_in_their_boxes(self):
        self.open(self.folded("main;関数関数関数関数 70\n"), "#page=flame")
        shown = self.page.evaluate("""[["関数".repeat(60), 200], ["W".repeat(99), 90], ["load", 200], ["関", 4]].map(([text, width]) => {
          const { context } = heapReport.flame;
          context.font = "12px system-ui, sans-serif";
          const shown = textThatFits(context, text, width, context.measureText("abcdefghijklmnopqrstuvwxyz::").width / 28);
          return [shown, context.measureText(shown).width <= width];
        })""")
        self.assertEqual([fits for _, fits in shown[:3]], [True] * 3, shown)
        self.assertTrue(shown[0][0].startswith("関数関数") and shown[0][0].endswith("…"), shown)
        self.assertEqual(shown[2][0], "load")

    def test_what_the_file_does_not_count_is_no_zero(self):
        self.open(self.folded("main;load 70\n"))
        tiles = self.page.evaluate("[...document.querySelectorAll('.tile')].map((one) => one.textContent.trim())")
        self.assertEqual(tiles, ["Live at end70 B", "Allocatedunknown"])
        self.assertEqual(self.page.evaluate("timeScale(heapReport.timeline.points.at(-1).time)"), [])
        self.assertEqual([text for text, _ in self.page.evaluate("timeScale(0.002)")], ["0 ms", "1 ms", "2 ms"])
        self.page.key("i")
        self.assertEqual(self.page.evaluate("[...document.querySelector('tbody tr').cells].map((cell) => cell.textContent).slice(1, 5)"),
                         ["?", "70 B", "▲ +70 B", "?"])
        self.page.key("3")
        self.page.key("o")
        self.assertEqual(self.page.evaluate("heapReport.view.key"), "space", "there is no other")

    def chosen(self):
        return self.page.evaluate("[...document.querySelectorAll('main select')].map((one) => one.selectedOptions[0].textContent)")

    def test_two_files_are_compared_and_words_say_which_minus_which(self):
        page = self.two_files("main;load 100\nmain;same 50\n", "main;load 30\nmain;new 1024\nmain;same 50\n")
        self.open(page, "#page=compare")
        self.assertEqual([text.split(":")[0] for text in self.chosen()], [str(self.directory / "before.folded")[:80],
                                                                          str(self.directory / "after.folded")[:80]])
        self.assertEqual(self.changes(), [("new", "▲ +1.00 KiB", "0 B", "1.00 KiB"), ("load", "▼ −70 B", "100 B", "30 B")])
        self.assertIn("B − A = ▲ +954 B (636% of A): from 150 B to 1.08 KiB live bytes",
                      self.page.evaluate("document.getElementById('change').textContent"))
        link = self.page.evaluate("location.hash")
        self.page.evaluate("[...document.querySelectorAll('button')].find((one) => one.textContent === 'Swap A and B').click()")
        self.assertEqual(self.changes(), [("new", "▼ −1.00 KiB", "1.00 KiB", "0 B"), ("load", "▲ +70 B", "30 B", "100 B")])
        self.open(page, link)
        self.assertEqual(self.changes()[0][1], "▲ +1.00 KiB", "a link has both moments")
        self.assertEqual(self.page.evaluate("heapReport.changeGraph.tree.total()"), 1024 + 70, "as wide as all that changed")

    def test_of_two_recordings_the_largest_heaps_are_compared(self):
        one, two = (self.with_marks(name, f"malloc({size})", 1) for name, size in (("one", 3_000_000), ("two", 4_000_000)))
        page = self.directory / "recordings.html"
        subprocess.run([HEAP_PROFILE, "report", "-q", "-o", page, one / "raw-trace", two / "raw-trace"], check=True, capture_output=True)
        self.open(page, "#page=compare")
        chosen = self.chosen()
        self.assertTrue(chosen[0].startswith(str(one)[:60]) and chosen[1].startswith(str(two)[:60]), chosen)
        self.assertEqual(self.changes()[0][1:], ("▲ +977 KiB", "2.86 MiB", "3.81 MiB"))

    def test_functions_of_another_build_are_the_same(self):
        for name, size in (("before", 100), ("after", 130)):
            profile = pprof_pb2.Profile(string_table=["", "space", "bytes", "f", f"/{name}/bin/tool"])
            profile.sample_type.add(type=1, unit=2)
            profile.mapping.add(id=1, filename=4)
            profile.function.add(id=1, name=3)
            profile.location.add(id=1, mapping_id=1).line.add(function_id=1)
            profile.sample.add(location_id=[1], value=[size])
            (self.directory / (name + ".pb")).write_bytes(profile.SerializeToString())
        page = self.directory / "builds.html"
        subprocess.run([HEAP_PROFILE, "report", "-q", "-o", page, self.directory / "before.pb", self.directory / "after.pb"],
                       check=True, capture_output=True)
        self.open(page, "#page=compare")
        self.assertEqual(self.changes(), [("f", "▲ +30 B", "100 B", "130 B")])

    def test_a_heap_dump_of_java_is_shown_by_class(self):
        """A and C hold B, which holds D: by path B hangs on A, and no object dominates it. E is garbage."""
        names = {10: "A", 20: "B", 30: "C", 40: "D", 50: "E"}
        dump = Dump(version="1.0.2").string(2, "first").string(3, "second")
        for number, name in names.items():
            dump.load_class(number, name)
        dump.segment(dump.root(0xFF, 100), dump.root(0xFF, 300), *(dump.class_dump(number, 0, [2, 3]) for number in names),
                     dump.instance(100, 10, 200, 0), dump.instance(200, 20, 400, 0), dump.instance(300, 30, 0, 200),
                     dump.instance(400, 40, 0, 0), dump.instance(500, 50, 0, 0)).end()
        (self.directory / "a.hprof").write_bytes(dump.bytes)
        report(self.directory / "a.hprof", self.directory / "managed.html")
        self.open(self.directory / "managed.html")
        texts = lambda selector: self.page.evaluate(f"[...document.querySelectorAll({json.dumps(selector)})].map((one) => one.textContent)")
        self.assertEqual([text.split(", ", 1)[1].split(":")[0] for text in texts("header option")],
                         ["managed, by path to root", "managed, by dominator (retained)"])
        self.assertEqual([text for text in texts("option") if "pid" in text], [])  # a dump does not tell it
        self.assertEqual(texts("[data-key=unreachable] .tile-value"), ["24 B"])
        self.assertIn("objects", texts("[data-key=live]")[0])
        self.assertEqual(texts("[data-key=allocated], .bar"), [])
        self.assertIn("D", texts(".top-row"))
        stacks = ("(() => { const { tree, report } = heapReport; return [...Array(tree.count).keys()].slice(1).map((node) => "
                  "tree.pathOf(node).map((at) => report.functions.name(tree.functions[at])).join(';')).filter((one) => "
                  "!one.includes('java.lang.Class')).sort(); })()")
        self.assertEqual([stack.removeprefix("all;") for stack in self.page.evaluate(stacks)], ["A", "A;B", "A;B;D", "C"])
        self.page.evaluate("heapReport.set({ moment: 1 })")
        self.assertEqual([stack.removeprefix("all;") for stack in self.page.evaluate(stacks)], ["A", "B", "B;D", "C"])
        for page in ("flame", "functions", "callers", "compare", "leaks", "sizes", "lives", "threads", "timeline", "quality"):
            self.page.evaluate(f"heapReport.set({{ page: '{page}' }})")
            self.assertTrue(self.page.evaluate("document.getElementById('page').textContent.length > 0"), page)

    def test_what_is_left_out_of_managed_heaps_is_told(self):
        """130 dumps, of which 128 have room; the last one has a chain of more classes than a tree is deep."""
        classes = 510
        dump = Dump(version="1.0.2").string(2, "next")
        for i in range(classes):
            dump.load_class(1000 + i, f"C{i}")
        for _ in range(129):
            dump.segment(dump.root(0xFF, 100), dump.class_dump(1000, 0, [2]), dump.instance(100, 1000, 0)).end()
        dump.segment(dump.root(0xFF, 5000), *(dump.class_dump(1000 + i, 0, [2]) for i in range(classes)),
                     *(dump.instance(5000 + i, 1000 + i, 5001 + i if i + 1 < classes else 0) for i in range(classes))).end()
        (self.directory / "many.hprof").write_bytes(dump.bytes)
        report(self.directory / "many.hprof", self.directory / "many.html")
        self.open(self.directory / "many.html")
        told = lambda: [text for _, text in self.page.evaluate("problemsOf(heapReport.report)")]
        self.assertEqual(told(), ["in managed heaps what is deeper than 500 classes, or has no room, counts for the node above it; "
                                  "heap_profile query has all",
                                  "the last 128 of 130 dumps of managed heaps are in the report; heap_profile query has all"])
        self.page.evaluate("heapReport.report.counts.dumps = 1")
        self.assertIn("0 of 1 dumps are in the report", "".join(told()), "managed heaps are none of them")

    def told(self):
        """What is wrong, by the page of Data quality."""
        return self.page.evaluate("[...document.querySelectorAll('#page li.bad')].map((one) => one.textContent)")

    def test_what_only_decoding_shows_to_be_wrong_is_told(self):
        _, page = self.textproto("""
            packet { trusted_packet_sequence_id: 2 sequence_flags: 1 timestamp: 1 interned_data { callstacks { iid: 1 frame_ids: 77 } } }
            packet { trusted_packet_sequence_id: 2 timestamp: 2 profile_packet { index: 0
              process_dumps { pid: 42 heap_name: "libc.malloc" timestamp: 2 samples { callstack_id: 1 self_allocated: 10 alloc_count: 1 } } } }
            """, "frame")
        self.open(page)
        self.page.key("q")
        self.assertIn("stackprofile_invalid_frame_id 1", "".join(self.told()))

    def test_what_ended_a_recording_of_perfettos_early_is_told(self):
        _, page = self.textproto((TRACES / "flags.textproto").read_text(), "flags")
        self.open(page)
        self.assertIn("the profile ends early: the buffer was full", self.page.evaluate("document.querySelector('.banner').textContent"))
        self.page.key("q")
        told = self.told()
        for cause, remedy in (("the buffer was full, and an allocation waited", "--shmem-size"), ("the buffer held what no recorder", "AddressSanitizer"),
                              ("a guardrail ended the recording", "max_heapprofd_memory_kb"),
                              ("(pid 5): the profile ends early: a thread ran on a stack that is not its own", "heap_profile does")):
            (line,) = [line for line in told if cause in line]
            self.assertIn(remedy, line)
        self.assertEqual([line for line in told if "heapprofd_buffer_overran" in line or "heapprofd_hit_guardrail" in line], [], "told once")

    def test_every_figure_of_quality_is_on_the_page(self):
        fields = trace_pb2.ProfilePacket.Quality.DESCRIPTOR.fields_by_name
        quality = " ".join(f"{name}: {1000 + i}" for i, name in enumerate(fields))
        file, page = self.textproto("""
            packet { trusted_packet_sequence_id: 2 sequence_flags: 1 timestamp: 1100 profile_packet { index: 0
              process_dumps { pid: 42 heap_name: "libc.malloc" timestamp: 1100 sampling_interval_bytes: 8192 orig_sampling_interval_bytes: 4096
                hit_guardrail: true quality { %s } } } }""" % quality)
        self.open(page, "#page=quality")
        shown = self.page.evaluate("[...document.querySelectorAll('#page tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))")
        rows = self.query_file(file, "SELECT name, value, description FROM heap_profile_quality")
        self.assertEqual({row["name"] for row in rows}, set(fields), "the table of figures and the trace's fields")
        self.assertEqual([[row["name"], f"{row['value']:,}", row["description"]] for row in rows], shown)
        told = "\n".join(self.told())
        for words in ("did not fit into the buffer", "the sampling interval was raised from 4096 to 8192 bytes", "damaged and left out", "without a stack",
                      "did not open in time", "the program had ended before the code there", "gone, or could not be opened", "more than 4096 at once", "record fewer with --heaps", "too many are live at once",
                      "that the program asked for could not be made", "marks were not kept", "are told of the heap alone", "are not listed", "a guardrail"):
            self.assertIn(words, told)
        faults = self.page.evaluate("[...document.querySelectorAll('#page tr.bad')].map((row) => row.cells[0].textContent)")
        self.assertIn("lost_records", faults)
        self.assertNotIn("samples", faults)

    def test_functions_without_names_have_their_remedy(self):
        _, page = self.textproto("""
            packet { process_tree { processes { pid: 42 ppid: 1 cmdline: "/bin/prog" profiling_start: 100 } } }
            packet { trusted_packet_sequence_id: 2 sequence_flags: 1 timestamp: 1100
              interned_data {
                build_ids { iid: 1 str: "\\xab" } mapping_paths { iid: 2 str: "usr" } mapping_paths { iid: 3 str: "libdemo.so" }
                mappings { iid: 4 build_id: 1 path_string_ids: 2 path_string_ids: 3 start: 0x10000 end: 0x20000 }
                frames { iid: 8 mapping_id: 4 rel_pc: 0x1401 } callstacks { iid: 11 frame_ids: 8 } }
              profile_packet { index: 0 process_dumps { pid: 42 heap_name: "libc.malloc" timestamp: 1100
                samples { callstack_id: 11 self_allocated: 800 alloc_count: 2 } } } }
            packet { process_end { pid: 42 profiling_start: 100 executable: "/bin/prog" unnamed { path: "/usr/libdemo.so" unnamed_frames: 1 reason: 3 } } }""",
                                 "unnamed")
        self.open(page, "#page=quality")
        self.assertEqual(self.page.evaluate("[...document.querySelectorAll('#page tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))"),
                         [["/usr/libdemo.so", "800 B", "100%",
                           "another build of it is in its place; put the file that ran into a directory of PERFETTO_BINARY_PATH"]])

    def shown(self, file):
        return subprocess.run([HEAP_PROFILE, "show", file], capture_output=True, text=True, check=True).stdout

    def test_what_the_summary_warns_of_the_page_does_in_the_same_words(self):
        """Attached, and with functions without names in a stripped file of a package."""
        path = pathlib.Path(shutil.which("dash")).resolve()
        notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True).stdout
        build_id = "".join(f"\\x{byte:02x}" for byte in bytes.fromhex(notes.split("Build ID:")[1].split()[0]))
        parts = path.parts[1:]
        file, page = self.textproto("""
            packet { process_tree { processes { pid: 42 ppid: 1 cmdline: "/bin/prog" profiling_start: 100 } } }
            packet { trusted_packet_sequence_id: 2 sequence_flags: 1 timestamp: 1100
              interned_data {
                build_ids { iid: 1 str: "%s" } %s
                mappings { iid: 4 build_id: 1 %s start: 0x10000 end: 0x20000 }
                frames { iid: 8 mapping_id: 4 rel_pc: 0x1401 } callstacks { iid: 11 frame_ids: 8 } }
              profile_packet { index: 0 process_dumps { pid: 42 heap_name: "libc.malloc" timestamp: 1100 profiling_start: 100
                sampling_interval_bytes: 1 orig_sampling_interval_bytes: 1 quality { samples: 1 }
                samples { callstack_id: 11 self_allocated: 800 alloc_count: 2 } } } }
            packet { process_end { pid: 42 profiling_start: 100 executable: "/bin/prog" rss_kib: 2048
              unnamed { path: "%s" build_id: "%s" unnamed_frames: 1 reason: 0 starts: 0x10000 } } }"""
            % (build_id, " ".join(f'mapping_paths {{ iid: {20 + i} str: "{part}" }}' for i, part in enumerate(parts)),
               " ".join(f"path_string_ids: {20 + i}" for i in range(len(parts))), path, build_id), "same")
        told = " ".join(self.shown(file).split())
        self.open(page)
        attached = "attached while it ran: what it had allocated before is not seen (live 800 B beside RSS 2.00 MiB)"
        self.assertIn("! " + attached, told)
        self.assertIn(attached, self.page.evaluate("document.querySelector('.banner').textContent"))
        self.page.key("q")
        self.assertIn(attached, self.told())
        (remedy,) = self.page.evaluate("[...document.querySelectorAll('#page tbody tr')].filter((row) => row.cells.length === 4).map((row) => row.cells[3].textContent)")
        self.assertIn("install dash-dbgsym", remedy)
        self.assertIn(remedy, told)

    def test_direct_buffers_have_owners_stacks_and_a_file(self):
        text = (TRACES.parent.parent / "queries" / "direct_buffers" / "in.textproto").read_text()
        _, page = self.textproto(text, "buffers")
        self.open(page)
        self.assertIn("1.23 KiB in 6 direct buffers of Java.", self.page.evaluate("document.getElementById('buffers').textContent"))
        self.page.key("j")
        self.assertEqual(self.page.evaluate("heapReport.state.page"), "buffers")
        cells = self.page.evaluate("[...document.querySelectorAll('#page tbody tr')].map((row) => [...row.cells].map((cell) => cell.innerText))")
        self.assertEqual([row[:4] for row in cells], [["nobody: they are garbage", "1.23 KiB", "100%", "6"]])
        self.assertEqual(cells[0][4].split("\n"), ["1.04 KiB in 2: Unsafe_AllocateMemory0 ← main", "129 B in 3: without a stack", "64 B in 1: GetStringUTFChars ← main"])
        saved = self.saved("buffers.csv").read_text()
        self.assertEqual(saved.splitlines(), ["held by,bytes,buffers,allocated by", '"nobody: they are garbage",1064,2,"Unsafe_AllocateMemory0←main"',
                                              '"nobody: they are garbage",129,3,""', '"nobody: they are garbage",64,1,"GetStringUTFChars←main"'])
        self.page.evaluate("[...document.querySelectorAll('td .link')].find((one) => one.textContent === 'Unsafe_AllocateMemory0').click()")
        self.assertEqual(self.page.evaluate("document.getElementById('pivot').textContent"), "Unsafe_AllocateMemory0")
        self.open(self.trace.parent / "report.html", "#page=buffers")
        self.assertEqual(self.page.evaluate("heapReport.state.page"), "overview", "where there are none there is no such page")

    def test_source_lines_are_in_the_page_when_that_is_wanted(self):
        code, other = self.directory / "held.cc", self.directory / "key.pem"
        code.write_text("int one;\nint* held = new int[100];  // </script>\n")
        other.write_text("of nobody else's business\n")
        large = [self.directory / f"large{number}.cc" for number in range(3)]
        for path in large:
            path.write_text(("x" * 99 + "\n") * 30_000)  # of 8 MiB in all
        names = [code, other, self.directory / "gone.cc", *large]
        profile = pprof_pb2.Profile(string_table=["", "space", "bytes", *(f"f{number}" for number in range(6)), *map(str, names)])
        profile.sample_type.add(type=1, unit=2)
        for number in range(1, 7):
            profile.function.add(id=number, name=2 + number, filename=8 + number)
            profile.location.add(id=number).line.add(function_id=number, line=2)
            profile.sample.add(location_id=[number], value=[1000 // number])
        file, page = self.directory / "lines.pb", self.directory / "lines.html"
        file.write_bytes(profile.SerializeToString())
        report(file, page)
        self.open(page)
        self.assertFalse(self.page.evaluate("heapReport.pages.some((one) => one.key === 'source')"))
        self.page.requests.clear()
        report(file, page, "--embed-source")
        self.open(page, "#page=source&view=space")
        self.page.wait("document.querySelector('#source tr.most') !== null")
        self.assertEqual(self.page.evaluate("[...document.querySelector('#source tr.most').cells].map((cell) => cell.textContent)"),
                         ["1000 B", "1000 B", "2", "int* held = new int[100];  // </script>"])
        texts = []
        for at in (1, 2):
            self.page.evaluate(f"(() => {{ const files = document.querySelector('.files'); files.selectedIndex = {at}; "
                               "files.dispatchEvent(new Event('change')); })()")
            self.page.wait(f"document.querySelector('#source h2').textContent !== {json.dumps(str(code) if at == 1 else str(other))}")
            texts.append(self.page.evaluate("document.getElementById('source').textContent"))
        self.assertIn("cannot embed " + str(other) + ": its name is not one of source code", texts[0])
        self.assertIn("there is no such file here", texts[1])
        self.assertNotIn("business", texts[0])
        said = self.page.evaluate("Object.values(heapReport.report.source.answers).map((one) => one.reason || '').join('|')")
        self.assertIn(f"cannot embed {large[2]}: there are 8 MiB of source code already; heap_profile view has it", said)
        self.assertNotIn(str(large[1]), said)

    def test_the_page_itself_is_small(self):
        page = (self.trace.parent / "report.html").read_bytes()
        at = page.index(b"application/octet-stream\">")
        itself = page[:at] + page[page.index(b"</script>", at):]
        self.assertLessEqual(len(itself), 120_000)
        self.assertLessEqual(len(gzip.compress(itself, 9)), 41_000)

    def test_changes_are_those_of_sql(self):
        out = self.with_marks("dumps", "[malloc(j + 1000) for j in range(1000)]", 2, "-i", "64")
        self.open(out / "report.html", "#page=compare&filters=none")
        dumps = self.page.evaluate("[heapReport.state.base, heapReport.state.moment].map((i) => heapReport.allMoments[i].dump.id)")
        self.assertNotEqual(dumps[0], dumps[1])
        for view in VIEWS:
            self.page.evaluate(f"heapReport.set({{view: '{view}'}})")
            (row,) = self.query_file(out / "raw-trace", "select sum(self_a) as a, sum(self_b) as b, sum(self_delta) as change "
                                     f"from diff({dumps[0]}, {dumps[1]}, '{view}')")
            self.assertEqual(self.page.evaluate(f"comparisonOf(heapReport).totals"), [row["a"], row["b"]], view)
            self.assertEqual(int(self.page.evaluate("document.getElementById('change').dataset.value")), row["change"], view)
            of_all = self.page.evaluate("[comparisonOf(heapReport).a[0], comparisonOf(heapReport).b[0]]")
            self.assertEqual(of_all, [row["a"], row["b"]], "what has not changed is part of A and B")
            sums = {}
            for name, a, b in self.page.evaluate("comparisonOf(heapReport).rows.map((row) => [heapReport.report.functions.name(row.function), row.a, row.b])"):
                known = sums.get(name, (0, 0))
                sums[name] = known[0] + a, known[1] + b
            rows = self.query_file(out / "raw-trace", "select name, sum(self_a) as a, sum(self_b) as b "
                                   f"from diff({dumps[0]}, {dumps[1]}, '{view}') group by name")
            told = {row["name"]: (row["a"], row["b"]) for row in rows}
            named = {name: pair for name, pair in sums.items() if not name.startswith("[")}
            self.assertGreater(len(named), 0)
            self.assertEqual(named, {name: told[name] for name in named}, view)

    def test_a_box_tells_how_its_stack_has_grown(self):
        out = self.with_marks("growth", "[malloc(j + 1000) for j in range(1000)]", 2, "-i", "64")
        self.open(out / "report.html", "#page=flame&filters=none")
        self.page.key("e")
        first, last = self.page.evaluate("[heapReport.moments.find((one) => !one.isPeak).dump.id, heapReport.moment.dump.id]")
        self.assertNotEqual(first, last)
        (row,) = self.query_file(out / "raw-trace", f"select cumulative_delta as growth from diff({first}, {last}, 'space') "
                                 "where parent_id is null order by cumulative_b desc limit 1")
        self.page.key("ArrowDown")
        self.page.key("ArrowDown")
        self.assertEqual(self.page.evaluate("heapReport.flame.selected"), 1)
        change = self.page.evaluate(f"formatChange({row['growth']}, 'bytes')")
        self.assertTrue(change.startswith("▲"), change)
        self.assertTrue(self.page.evaluate("document.getElementById('selection').textContent").endswith(change), change)
        self.page.evaluate("heapReport.set({moment: heapReport.moments.find((one) => !one.isPeak).index})")
        self.assertEqual(self.page.evaluate("heapReport.growthText(1)"), "", "it is the first")

    def test_lines_and_directions_of_texts_end_with_them(self):
        self.open(self.folded("main;f 1\n"))
        self.assertEqual(self.page.evaluate("printable('a\\nb\\tc\\u202ed\\u0007')"), "a b c\ufffdd\ufffd")

    def test_changes_within_the_sampling_error_are_grey(self):
        self.open(self.two_files("main;load 100000\nmain;other 100\n", "main;load 101000\nmain;other 90000\n"), "#page=compare")
        self.page.evaluate("heapReport.report.trees.forEach((tree) => { tree.about.has_errors = true; "
                           "tree.ownErrors = () => new Float64Array(tree.count).fill(1000); })")
        self.page.evaluate("heapReport.cache.clear(); heapReport.render()")
        noisy = self.page.evaluate("[...document.querySelectorAll('.changes tbody tr')].map((row) => [row.cells[4].textContent, "
                                   "row.className])")
        self.assertEqual(noisy, [["other", ""], ["load", "noise"]])
        style = "comparisonOf(heapReport).style('bytes', heapReport.report.functions)"
        self.assertEqual(self.page.evaluate(f"[...comparisonOf(heapReport).tree.functions].map((fn, node) => "
                                            f"[heapReport.report.functions.name(fn), {style}.color(node) === SAME])"),
                         [["all", False], ["main", False], ["other", False], ["load", True]])

    def test_what_does_not_differ_is_said(self):
        self.open(self.two_files("main;load 100\n", "main;load 100\n"), "#page=compare")
        self.assertIn("Nothing changed", self.page.evaluate("document.getElementById('empty').textContent"))
        self.open(self.folded("main;load 70\n"), "#page=compare")
        self.assertIn("heap_profile report BEFORE AFTER", self.page.evaluate("document.getElementById('page').textContent"))

    def test_keys_walk_and_zoom_changes(self):
        self.open(self.two_files("main;load;x 100\n", "main;load;x 30\nmain;new 1024\n"), "#page=compare")
        for key in ("ArrowDown", "ArrowDown", "ArrowDown", "Enter"):
            self.page.key(key)
        zoomed = "heapReport.report.functions.name(heapReport.changeGraph.tree.functions[heapReport.changeGraph.zoom])"
        self.assertEqual(self.page.evaluate(zoomed), "new")
        self.page.key("Escape")
        self.assertEqual(self.page.evaluate(zoomed), "main")
        self.page.key("f")
        self.assertEqual(self.page.evaluate("heapReport.state.zoom"), 0, "numbers of another tree")

    def test_lives_are_those_of_the_program(self):
        out = self.directory / "lives"
        subprocess.run([HEAP_PROFILE, "-q", "-i", "1", "-o", out, "--", program("known_lives")], check=True, capture_output=True)
        self.open(out / "report.html", "#page=lives")
        rows = lambda card: self.page.evaluate(f"[...document.querySelectorAll('#{card} tbody tr')].map((row) => "
                                               "[...row.cells].map((cell) => cell.textContent))")
        name, share, blocks, _, mean = rows("temporary")[0]
        self.assertEqual((name, mean), ("temporary", "100 B"))
        self.assertRegex(share, r"^2\d%$")
        self.assertRegex(blocks, r"^(9\d\d|1\.00 k)$")
        done = subprocess.run([HEAP_PROFILE, "query", "--json", out / "raw-trace", "SELECT kind, count(DISTINCT low) AS rows FROM "
                               "heap_profile_histogram GROUP BY 1"], check=True, capture_output=True, text=True)
        known = {row["kind"]: row["rows"] for row in json.loads(done.stdout)}
        self.assertEqual((len(rows("lifetimes")), len(rows("ages"))), (known["lifetime"], known["age"]))
        self.assertRegex(rows("lifetimes")[-1][0], r"^(4\.19|8\.39|16\.8|33\.6|67\.1|134|268) ms to under (8\.39|16\.8|33\.6|67\.1|134|268|537) ms$")  # 5 ms and somewhat more
        # At the terminal, on this page and on Overview: of all calls that were counted.
        (temporary,) = re.findall(r", (\d+% temporary)", self.shown(out / "raw-trace"))
        self.assertIn(temporary.replace(" temporary", " of all allocations"), self.page.evaluate("document.querySelector('#temporary h2').textContent"))
        self.page.evaluate("heapReport.set({page: 'overview'})")
        self.assertTrue(self.page.evaluate("document.querySelector('[data-key=allocated]').textContent").endswith(" calls · " + temporary))
        self.page.evaluate("heapReport.set({page: 'lives'})")
        self.page.evaluate("document.querySelector('#temporary .link').click()")
        self.assertEqual(self.page.evaluate("[document.getElementById('pivot').textContent, heapReport.state.view]"), ["temporary", "alloc_objects"])
        self.page.key("o")
        self.page.key("h")
        self.assertEqual(self.page.evaluate("heapReport.state.page"), "lives")

    def with_idle(self, dump, idle=(0, 0, 0)):
        """The page of one dump at 100 s: Cold and Cool hold 8 MiB each, Hot 4."""
        samples = " ".join(f"samples {{ callstack_id: {i} self_allocated: {size} alloc_count: 1 live_bytes_error: 0 self_idle: {cold} }}"
                           for i, (size, cold) in enumerate(zip((8 << 20, 8 << 20, 4 << 20), idle), 1))
        names = " ".join(f'function_names {{ iid: {i} str: "{name}" }} frames {{ iid: {i} function_name_id: {i} }} callstacks {{ iid: {i} frame_ids: {i} frame_ids: 4 }}'
                         for i, name in enumerate(("Cold", "Cool", "Hot"), 1))
        return self.textproto("""
            packet { clock_snapshot { clocks { clock_id: 6 timestamp: 1 } clocks { clock_id: 4 timestamp: 1 } primary_trace_clock: 6 } }
            packet { trusted_packet_sequence_id: 2 sequence_flags: 1 interned_data {
              build_ids { iid: 0 str: "" } mapping_paths { iid: 0 str: "" } function_names { iid: 4 str: "malloc" } frames { iid: 4 function_name_id: 4 } %s } }
            packet { trusted_packet_sequence_id: 2 timestamp: 100000000000 profile_packet { index: 0 process_dumps {
              pid: 7 heap_name: "libc.malloc" timestamp: 100000000000 start_timestamp: 1 %s %s } } }""" % (names, dump, samples), "idle")[1]

    def test_what_nobody_touches(self):
        card = "(document.querySelector('#idle') || {}).innerText"
        tile = "(document.querySelector('[data-key=idle]') || {}).innerText"
        self.open(self.with_idle("idle_since: 60000000000 idle_until: 100000000000 idle_unseen: 3145728", (8 << 20, 1 << 20, 0)), "#page=lives")
        shown = self.page.evaluate(card).split("\n")
        self.assertEqual(shown[0], "Idle: 9.00 MiB of live 20.0 MiB")
        self.assertIn("Not touched in the last 40.0 s, by whole pages. 3.00 MiB could not be looked at.", shown)
        self.assertEqual(self.page.evaluate("[...document.querySelectorAll('#idle tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))"),
                         [["Cold", "40%", "8.00 MiB"], ["Cool", "5.0%", "1.00 MiB"]])
        self.page.evaluate("document.querySelector('#idle .link').click()")
        self.assertEqual(self.page.evaluate("[document.getElementById('pivot').textContent, heapReport.state.view]"), ["Cold", "space"])
        self.page.key("o")
        self.assertIn("9.00 MiB\nnot touched in the last 40.0 s", self.page.evaluate(tile))
        # Of a process that was killed; more than is live is not told.
        self.open(self.with_idle("idle_since: 20000000000 idle_until: 60000000000 idle_unseen: 3145728", (9 << 20, 9 << 20, 9 << 20)), "#page=lives")
        self.assertIn("Idle: 20.0 MiB of live 20.0 MiB", self.page.evaluate(card))
        self.assertIn("Not touched for 40.0 s until 40.0 s before the end, by whole pages.", self.page.evaluate(card))
        self.assertNotIn("could not be looked at", self.page.evaluate(card))
        # Asked for, and not known; not asked for.
        unknown = "there was no second look at it"
        self.open(self.with_idle("idle_unseen: 0"), "#page=lives")
        self.assertIn(unknown, self.page.evaluate("document.getElementById('page').innerText"))
        self.open(self.with_idle(""), "#page=lives")
        self.assertNotIn(unknown, self.page.evaluate("document.getElementById('page').innerText"))
        self.page.key("o")
        self.assertIsNone(self.page.evaluate(tile))

    def test_blocks_without_a_stack_are_nobodys(self):
        shapes = " ".join(f"shapes {{ callstack_id: 1 kind: {kind} log2: 3 bytes: 80 count: 10 bytes_error: 0 count_error: 0 }}" for kind in (0, 1, 2, 3))
        _, page = self.textproto("""
            packet { clock_snapshot { clocks { clock_id: 6 timestamp: 1 } clocks { clock_id: 4 timestamp: 1 } primary_trace_clock: 6 } }
            packet { trusted_packet_sequence_id: 2 sequence_flags: 1 interned_data { build_ids { iid: 0 str: "" } mapping_paths { iid: 0 str: "" }
              function_names { iid: 4 str: "malloc" } frames { iid: 4 function_name_id: 4 } callstacks { iid: 1 frame_ids: 4 } } }
            packet { trusted_packet_sequence_id: 2 timestamp: 1000 profile_packet { index: 0 process_dumps { pid: 7 heap_name: "libc.malloc"
              timestamp: 1000 start_timestamp: 1 idle_since: 10 idle_until: 900 idle_unseen: 0 %s
              samples { callstack_id: 1 self_allocated: 80 alloc_count: 10 live_bytes_error: 0 self_idle: 80 } } } }""" % shapes, "nobody")
        self.open(page, "#page=lives")
        for card in ("idle", "temporary"):
            self.assertEqual(self.page.evaluate(f"document.querySelector('#{card} tbody tr').cells[0].textContent"), "?")
        self.page.key("s")
        self.assertEqual(self.page.evaluate("heapReport.state.page"), "sizes")

    def test_a_file_without_lives_says_so(self):
        file = self.directory / "none.folded"
        file.write_text("main;f 10\n")
        report(file, self.directory / "none.html")
        self.open(self.directory / "none.html", "#page=lives")
        self.assertIn("No lives are known", self.page.evaluate("document.querySelector('#empty').textContent"))

    def test_sizes_are_those_of_stacks(self):
        profile = pprof_pb2.Profile(string_table=["", "objects", "count", "space", "bytes", "small", "large", "malloc", "mixed"])
        profile.sample_type.add(type=1, unit=2)
        profile.sample_type.add(type=3, unit=4)
        for id, name in ((1, 5), (2, 6), (3, 7), (4, 8)):
            profile.function.add(id=id, name=name)
            profile.location.add(id=id).line.add(function_id=id)
        for stack, values in (([1], (10, 640)), ([3, 2], (2, 5000)), ([4], (3, 240))):
            profile.sample.add(location_id=stack, value=values)
        file = self.directory / "sizes.pb"
        file.write_bytes(profile.SerializeToString())
        report(file, self.directory / "sizes.html")
        self.open(self.directory / "sizes.html", "#page=sizes")
        rows = lambda: self.page.evaluate("[...document.querySelectorAll('tbody tr')].map((row) => [0, 2, 3, 4, 5].map((i) => "
                                          "row.cells[i].textContent.trim()))")
        self.assertEqual(rows(), [["64 B to under 128 B", "15%", "880 B", "13", "small 640 B  mixed 240 B"],
                                  ["2.00 KiB to under 4.00 KiB", "85%", "4.88 KiB", "2", "large 4.88 KiB"]])
        self.page.key("3")
        self.assertEqual([row[1] for row in rows()], ["87%", "13%"])
        self.open(self.trace.parent / "report.html", "#page=sizes&moment=0")
        (row,) = self.query("select sum(self) as total from flamegraph(0, 'space') where self > 0")
        told = self.page.evaluate("[...document.querySelectorAll('tbody tr')].map((row) => Number(row.cells[3].title.replace(/[^0-9]/g, '')))")
        self.assertEqual(sum(told), row["total"])

    def test_sizes_and_times_are_labelled_by_their_borders(self):
        """A block of a size is in the row whose label says so, also at its borders and where a mean is no whole number."""
        profile = pprof_pb2.Profile(string_table=["", "objects", "count", "space", "bytes", *"abcdefg"])
        profile.sample_type.add(type=1, unit=2)
        profile.sample_type.add(type=3, unit=4)
        for id, (objects, size) in enumerate(((4, 2), (1, 1), (1, 2), (2, 63), (1, 32), (1, 1023), (1, 1024)), 1):
            profile.function.add(id=id, name=4 + id)
            profile.location.add(id=id).line.add(function_id=id)
            profile.sample.add(location_id=[id], value=[objects, size])
        (self.directory / "borders.pb").write_bytes(profile.SerializeToString())
        report(self.directory / "borders.pb", self.directory / "borders.html")
        self.open(self.directory / "borders.html", "#page=sizes")
        rows = self.page.evaluate("[...document.querySelectorAll('tbody tr')].map((row) => [row.cells[0].textContent, "
                                  "[...row.cells[5].querySelectorAll('.link')].map((one) => one.textContent).sort().join('')])")
        self.assertEqual(rows, [["under 2 B", "ab"], ["2 B to under 4 B", "c"], ["16 B to under 32 B", "d"], ["32 B to under 64 B", "e"],
                                ["512 B to under 1.00 KiB", "f"], ["1.00 KiB to under 2.00 KiB", "g"]])
        self.assertEqual(self.page.evaluate("[estimated(14, 64), formatError(8, 14)]"), ["14 ≤30", "≤30 B"], "blocks are no bytes")
        ranges = self.page.evaluate("[[0, 256], [256, 512], [1048576, 2097152]].map(([low, end]) => formatRange(low, end, formatTime))")
        self.assertEqual(ranges, ["under 256 ns", "256 ns to under 512 ns", "1.05 ms to under 2.10 ms"])

    def test_sizes_of_blocks_are_measured_where_a_stack_has_several(self):
        out = self.directory / "blocks"
        command = "b = [bytearray(n) for n in (100_000, 100_000, 1_000_000)]; import os; os._exit(0)"
        subprocess.run([HEAP_PROFILE, "-q", "-i", "1", "-o", out, "--", "/usr/bin/python3", "-c", command], check=True)
        self.open(out / "report.html", "#page=sizes")
        rows = self.page.evaluate("[...document.querySelectorAll('tbody tr')].map((row) => [0, 3, 4].map((i) => row.cells[i].textContent.trim()))")
        self.assertIn("by the size that was asked for", self.page.evaluate("document.querySelector('#page').textContent"))
        blocks = {size: int(count) for size, _, count in rows}
        self.assertIn(["512 KiB to under 1.00 MiB", "977 KiB", "1"], rows)
        self.assertGreaterEqual(blocks["64.0 KiB to under 128 KiB"], 2)
        live = self.query_file(out / "raw-trace", "select sum(count) as count from heap_profile_histogram where kind = 'live_size'")[0]["count"]
        told = self.page.evaluate("[...document.querySelectorAll('tbody tr')].map((row) => Number(row.cells[4].title.replace(/[^0-9]/g, '')))")
        self.assertEqual(sum(told), live)

    def test_a_range_of_the_timeline_is_compared_and_a_click_chooses(self):
        out = self.with_marks("range", "malloc(500_000)", 4)
        for page in ("timeline", "overview"):
            self.open(out / "report.html", "#page=" + page)
            x, y, points = self.page.evaluate("((view) => (({x, y}) => [x, y, view.data.points.filter((point) => point.dump >= 0 && "
                                              "!point.isPeak).map((point) => [view.x(point.time), view.y(point.value)])])("
                                              "view.canvas.getBoundingClientRect()))(heapReport.timelineView)")
            self.assertEqual(len(points), 5, "four marks and the end")
            (first, _), (second, height) = points[0], points[2]
            self.page.drag((x + second, y + 40), (x + first, y + 60))
            titles = [text.split(": ")[0] for text in self.chosen()]
            self.assertEqual(titles, ["0", "2"])
            self.page.evaluate("history.back()")
            self.page.wait(f"heapReport.state.page === '{page}'")
            self.page.click(x + second, y + height)
            self.assertEqual(self.page.evaluate("[heapReport.state.page, heapReport.moment.title]"), [page, "2"])

    def test_functions_have_their_memory_over_time(self):
        out = self.with_marks("series", "malloc(300_000)\n free(malloc(100_000))", 4)
        self.open(out / "report.html", "#page=timeline&filters=none")
        moments = "heapReport.heap.moments.filter((one) => !one.isPeak)"
        dumps = self.page.evaluate(moments + ".map((one) => one.dump.id)")
        self.assertEqual(len(dumps), 5, "four marks and the end")
        for view in VIEWS:
            self.page.key(str(1 + VIEWS.index(view)))
            shown = self.page.evaluate(f"(({{series, totals}}) => [series.map((one) => [one.group ? heapReport.report.functions.name(one.group) : '', "
                                       f"one.values]), totals])(seriesOf(heapReport, {moments}))")
            self.assertEqual(len(shown[0]), 9, "and all others")
            for i, dump in enumerate(dumps):
                (row,) = self.query_file(out / "raw-trace", f"select sum(self) as total from flamegraph({dump}, '{view}')")
                self.assertEqual(shown[1][i], row["total"], (view, dump))
                self.assertEqual(sum(values[i] for _, values in shown[0]), row["total"], (view, dump))
                told = {row["name"]: row["self"] for row in self.query_file(out / "raw-trace", f"select name, sum(self) as self from top('{view}', 100000, {dump}) group by name")}
                named = {name: values[i] for name, values in shown[0] if name in told}
                self.assertGreater(len(named), 2)
                self.assertEqual(named, {name: told[name] for name in named}, (view, dump))
            cells = self.page.evaluate("[...document.querySelectorAll('.series tbody tr')].map((row) => [...row.cells].map((cell) => cell.innerText))")
            self.assertEqual([row[0] for row in cells], [*"12345678", "…"])
            self.assertEqual(cells[8][1], "all others")
        self.page.key("1")
        self.assertIn("by function", self.page.evaluate("document.getElementById('page').textContent"))
        self.page.evaluate("heapReport.seriesView.canvas.scrollIntoView()")
        x, y, points = self.page.evaluate("((view) => (({x, y}) => [x, y, view.data.points.map((point) => [view.x(point.time), view.y(point.value)])])("
                                          "view.canvas.getBoundingClientRect()))(heapReport.seriesView)")
        self.page.click(x + points[1][0], y + points[1][1])
        self.assertEqual(self.page.evaluate("[heapReport.state.page, heapReport.moment.time]"),
                         ["timeline", self.page.evaluate("heapReport.seriesView.data.points[1].time")])
        colors = self.page.evaluate("[...document.querySelectorAll('.series td:first-child')].map((cell) => cell.style.background)")
        self.assertEqual(len(set(colors)), 9)
        self.page.evaluate("[...document.querySelectorAll('.series .link')][0].focus()")
        self.page.key("Enter")
        self.assertEqual(self.page.evaluate("heapReport.state.page"), "callers")
        name = self.page.evaluate("document.getElementById('pivot').textContent")
        link = "#page=timeline&filters=" + json.dumps([{"kind": "hide", "text": name, "exact": True}])
        self.open(out / "report.html", link)
        self.assertNotIn(name, self.page.evaluate("[...document.querySelectorAll('.series .link')].map((one) => one.textContent)"))
        self.open(self.folded("main;load 70\n"), "#page=timeline")
        self.assertIn("heap_profile -c 1000", self.page.evaluate("document.getElementById('page').textContent"))

    def test_a_thread_has_a_flame_graph_of_what_it_has_allocated(self):
        out = self.directory / "workers"
        script = ("import ctypes, threading\nlibc = ctypes.CDLL(None)\nlibc.malloc.restype = ctypes.c_void_p\n"
                  "libc.free.argtypes = [ctypes.c_void_p]\n"
                  "def work(size):\n libc.prctl(15, b'worker%d' % size)\n for i in range(50):\n  libc.malloc(size)\n  libc.free(libc.malloc(size))\n"
                  "for size in (1000, 9000, 5000):\n thread = threading.Thread(target=work, args=(size,))\n thread.start()\n thread.join()")
        subprocess.run([HEAP_PROFILE, "-q", "-i", "1", "--no-children", "-o", out, "--", "/usr/bin/python3", "-c", script], capture_output=True, check=True)
        rows = self.query_file(out / "raw-trace", "select tid, live_size, alloc_size, live_count, alloc_count from heap_profile_thread where dump_id = "
                               "(select max(id) from heap_dump) order by live_size desc")
        self.assertEqual(len(rows), 4)
        self.open(out / "report.html", "#page=threads")
        names = self.page.evaluate("[...document.querySelectorAll('tbody .link')].map((one) => one.textContent)")
        self.assertEqual([int(name.split()[-1]) for name in names], [row["tid"] for row in rows])
        for i, row in enumerate(rows):
            self.page.key("r")
            self.page.evaluate(f"document.querySelectorAll('tbody .link')[{i}].focus()")
            self.page.key("Enter")
            self.assertEqual(self.page.evaluate("[heapReport.state.page, heapReport.moment.tid]"), ["flame", row["tid"]])
            for number, column in enumerate(("live_size", "alloc_size", "live_count", "alloc_count"), 1):
                self.page.key(str(number))
                self.assertEqual(self.total(), row[column], (row["tid"], column))
            self.page.key("1")
        chosen = lambda: self.page.evaluate("document.querySelector('[aria-label=Thread]').selectedOptions[0].textContent.split(':')[0]")
        choose = lambda index: self.page.evaluate(f"((list) => {{ list.selectedIndex = {index}; list.dispatchEvent(new Event('change')); }})"
                                                  "(document.querySelector('[aria-label=Thread]'))")
        choose(1)
        self.assertEqual(chosen(), "thread " + names[0])
        self.page.key("u")
        total = self.page.evaluate("document.querySelector('#page tbody').innerText")
        link = self.page.evaluate("location.hash")
        self.open(out / "report.html", link)
        self.assertEqual(chosen(), "thread " + names[0], "the address has it")
        self.assertEqual(self.page.evaluate("document.querySelector('#page tbody').innerText"), total)
        self.assertIn(str(rows[0]["tid"]), self.saved("folded").name)
        for key in PAGES:
            self.page.key(key)
            self.assertGreater(len(self.page.evaluate("document.getElementById('page').textContent")), 30, key)
        self.page.key("f")
        choose(0)
        self.assertEqual([chosen(), self.page.evaluate("heapReport.moment === heapReport.heap.end")], ["all threads", True])
        choose(2)
        self.page.key("[")
        self.assertEqual(self.page.evaluate("heapReport.moment === heapReport.moments.at(-2)"), True, "before the end")
        self.open(self.trace.parent / "report.html")
        self.assertFalse(self.page.evaluate("Boolean(document.querySelector('[aria-label=Thread]'))"), "there is one alone")

    def test_leaks_are_ranked_by_evidence(self):
        out = self.with_marks("leaks", "malloc(100_000)\n free(malloc(50_000))", 8)
        self.open(out / "report.html", "#page=leaks&filters=none")
        rows = self.page.evaluate("(({rows, tree}) => rows.map((row) => [row.evidence, row.live, row.growth, row.series, row.allocated]))"
                                  "(findLeaks(heapReport, heapReport.heap))")
        self.assertEqual(rows, sorted(rows, key=lambda row: (row[0], -row[2] if row[0] < 2 else -row[1])))
        for evidence, live, growth, series, allocated in rows:
            self.assertEqual(growth, series[-1] - series[0])
            self.assertEqual(series[-1], live)
            self.assertEqual(evidence in (0, 1), series == sorted(series) and len(set(series)) > 2, series)
            self.assertTrue(evidence == 1 or live == allocated)
        (live,) = [row["live"] for row in self.query_file(out / "raw-trace", "select sum(size) as live from heap_profile_allocation")]
        self.assertLessEqual(sum(row[1] for row in rows), live)
        self.assertTrue(any(row[0] == 1 and row[1] >= 800_000 and row[4] >= row[1] + 400_000 for row in rows), "malloc() of the script")
        self.assertEqual(self.page.evaluate("document.querySelector('.leaks tbody tr').cells[3].textContent.length"),
                         len(rows[0][3]))

    def test_what_a_container_has_freed_counts_for_its_caller(self):
        """As at the terminal; the container's own function holds nothing at the end."""
        profile = pprof_pb2.Profile(string_table=["", "space", "bytes", "alloc_space", "AddSession", "std::list<int>::push_back", "Keep"])
        profile.sample_type.add(type=1, unit=2)
        profile.sample_type.add(type=3, unit=2)
        for number, name in enumerate((4, 5, 6), 1):
            profile.function.add(id=number, name=name)
            profile.location.add(id=number).line.add(function_id=number)
        for stack, live, allocated in (([1], 1000, 1000), ([2, 1], 0, 500), ([3], 70, 70)):
            profile.sample.add(location_id=stack, value=[live, allocated])
        file, page = self.directory / "freed.pb", self.directory / "freed.html"
        file.write_bytes(profile.SerializeToString())
        report(file, page)
        self.open(page, "#page=leaks")
        told = json.loads(subprocess.run([HEAP_PROFILE, "leaks", "--json", file], capture_output=True, text=True, check=True).stdout)
        self.assertEqual([stack["stack"][0]["name"] for stack in told["stacks"]], ["Keep"], "something of AddSession was freed")
        self.assertEqual(self.page.evaluate("[...document.querySelectorAll('.leaks tbody tr')].map((row) => "
                                            "row.cells[5].querySelector('button').textContent)"), ["Keep"])
        self.assertIn("1 stack holds 70 B at the end, 6.5% of what is live then", self.page.evaluate("document.getElementById('leaks').textContent"))
        self.page.evaluate("heapReport.set({filters: []})")
        self.assertEqual(self.page.evaluate("document.querySelectorAll('.leaks tbody tr').length"), 2, "each function for itself")

    def test_dumps_without_trees_are_told_where_leaks_are_looked_for(self):
        self.open(self.folded("main;load 70\n"), "#page=leaks")
        self.page.evaluate("heapReport.report.dumps.push({...heapReport.heap.end.dump, id: 7}, {...heapReport.heap.end.dump, id: 8})")
        self.page.evaluate("heapReport.render()")
        text = self.page.evaluate("document.getElementById('page').textContent")
        self.assertIn("2 more dumps have no call tree here: heap_profile query has all.", text)

    def test_of_a_cut_file_the_cut_is_the_reason_for_nothing(self):
        file, page = self.textproto("packet { trusted_packet_sequence_id: 2 sequence_flags: 1 profile_packet { process_dumps { "
                                    "pid: 7 heap_name: 'libc.malloc' reason: 'it is statically linked' } } }", "cut")
        file.write_bytes(file.read_bytes() + b"\x0a\x7f")
        report(file, page)
        self.open(page, "#page=flame")
        text = self.page.evaluate("document.getElementById('page').textContent")
        self.assertIn("is incomplete: it ends in the middle of a packet; what comes before is used", text)
        self.assertNotIn("statically", text)
        self.assertNotIn("Use a smaller one", text)

    def test_evidence_of_leaks_needs_dumps_and_frees(self):
        self.open(self.folded("main;load 70\n"), "#page=leaks")
        text = self.page.evaluate("document.getElementById('page').textContent")
        for part in ("There is none", "heap_profile -c 1000", "the file does not tell"):
            self.assertIn(part, text)
        evidence = lambda series, allocated, tells="true": self.page.evaluate(
            f"evidenceOf({{series: {series}, live: {series[-1]}, allocated: {allocated}}}, {tells})")
        self.assertEqual([evidence([1, 2, 3], 3), evidence([1, 2, 3], 4), evidence([3, 3, 3], 3), evidence([3, 3, 3], 4)], [0, 1, 2, -1])
        self.assertEqual([evidence([1, 3], 3), evidence([1, 3, 2, 4], 9), evidence([1, 1, 3], 9), evidence([1, 2, 3], 3, "false"),
                          evidence([3], 3, "false")], [2, -1, -1, 1, -1])

    def saved(self, kind):
        """What a button of the dialog saves."""
        directory = pathlib.Path(tempfile.mkdtemp(dir=self.directory))
        self.page.download_to(directory)
        self.page.key("x")
        self.page.evaluate(f"document.querySelector('[data-export=\"{kind}\"]').click()")
        self.page.wait("!document.querySelector('dialog')")
        return self.page.downloaded(directory)

    def functions_in(self, file):
        rows = self.query_file(file, "select name, self, cumulative from top('space', 100000) where cumulative != 0")
        return sorted((row["name"], row["self"], row["cumulative"]) for row in rows)

    def test_saved_stacks_have_the_same_functions_to_the_byte(self):
        source = self.folded("main;load;parse 70\nmain;load;load 20\nmain;save 10\nother 3\n")
        self.open(source)
        for kind in ("folded", "pb.gz"):
            file = self.saved(kind)
            self.assertTrue(file.name.endswith(".end." + kind), file)
            self.assertEqual(self.functions_in(file), self.functions_in(self.directory / "stacks.folded"), kind)
        self.page.evaluate("heapReport.set({filters: [{kind: 'from', text: 'load', exact: true}]})")
        self.assertEqual(self.saved("folded").read_text(), "load;parse 70\nload;load 20\n")

    def test_files_are_those_that_the_command_writes_of_the_same_heap(self):
        """Two encoders, in two languages (docs/adding.md)."""
        def exported(kind):
            file = self.directory / ("command." + kind)
            subprocess.run([HEAP_PROFILE, "export", "--format", kind, "-o", file, self.directory / "both.folded"], check=True)
            return file

        def stacks_in(file):
            read = json.loads(file.read_text())
            (profile,) = read["profiles"]
            names = [frame["name"] for frame in read["shared"]["frames"]]
            return sorted(([names[i] for i in sample], weight) for sample, weight in zip(profile["samples"], profile["weights"]))

        self.open(self.folded('main;load;parse 70\nmain;load;load 20\nmain;=say "<hi>", 1 10\nother 3\n', "both"))
        for kind in ("folded", "csv"):
            self.assertEqual(sorted(self.saved(kind).read_text().splitlines()), sorted(exported(kind).read_text().splitlines()), kind)
        self.assertEqual(stacks_in(self.saved("speedscope.json")), stacks_in(exported("speedscope")))
        self.assertEqual(self.functions_in(self.saved("pb.gz")), self.functions_in(exported("pprof")))

    def test_a_saved_pprof_profile_has_all_values_of_the_recording(self):
        self.open(self.trace.parent / "report.html", "#moment=0")
        profile = pprof_pb2.Profile()
        file = self.saved("pb.gz")
        profile.ParseFromString(gzip.decompress(file.read_bytes()))
        types = [profile.string_table[one.type] for one in profile.sample_type]
        self.assertEqual(types, ["alloc_objects", "alloc_space", "objects", "space"])
        for i, view in enumerate(types):
            (row,) = self.query(f"select sum(self) as total from flamegraph(0, '{view}')")
            self.assertEqual(sum(sample.value[i] for sample in profile.sample), row["total"], view)
        if shutil.which("go"):
            text = subprocess.run(["go", "tool", "pprof", "-raw", "-sample_index=space", file], check=True, capture_output=True,
                                  text=True, env={**os.environ, "GOCACHE": str(self.directory)}).stdout
            self.assertIn("leaks_huge", text)

    def test_saved_speedscope_and_csv_files_are_well_formed(self):
        names = ['say "<hi>", =1+1', "a;b"]
        self.open(self.folded("main;" + names[0] + " 5\nmain;f 7\n", "quotes"))
        frames = json.loads(self.saved("speedscope.json").read_text())
        (profile,) = frames["profiles"]
        stacks = {";".join(frames["shared"]["frames"][i]["name"] for i in sample): weight
                  for sample, weight in zip(profile["samples"], profile["weights"])}
        self.assertEqual(stacks, {"main;" + names[0]: 5, "main;f": 7})
        self.assertEqual((profile["type"], profile["unit"], profile["startValue"], profile["endValue"]), ("sampled", "bytes", 0, 12))
        rows = list(csv.reader(self.saved("csv").read_text().splitlines()))
        self.assertEqual(rows[1:], [["f", "", "", "7", "7"], [names[0], "", "", "5", "5"], ["main", "", "", "0", "12"]])

    def test_names_are_no_formulas_in_csv_files(self):
        names = ["=HYPERLINK(1)", "+1", "-1", "@x"]
        self.open(self.folded("".join(f"{name};{name} {4 - i}\n" for i, name in enumerate(names)), "formulas"))
        rows = list(csv.reader(self.saved("csv").read_text().splitlines()))
        self.assertEqual([row[0] for row in rows[1:]], ["'" + name for name in names])

    def test_a_picture_that_the_browser_does_not_draw_is_no_file(self):
        self.open(self.folded("main;load 70\n"), "#page=flame")
        self.page.evaluate("HTMLCanvasElement.prototype.toBlob = (done) => done(null)")
        self.page.key("x")
        self.page.evaluate("document.querySelector('[data-export=png]').click()")
        self.page.wait("document.querySelector('dialog [role=status]').textContent.includes('draws no picture as large')")

    def test_saved_pictures_show_the_zoomed_boxes(self):
        self.open(self.folded("main;<script>alert(1)</script>&;y 90\nmain;other 10\n", "pictures"), "#page=flame")
        texts = lambda: [one.text for one in xml.etree.ElementTree.fromstring(self.saved("svg").read_text()).iter(
            "{http://www.w3.org/2000/svg}text")]
        self.assertEqual(sorted(texts()), ["<script>alert(1)</script>&", "all – 100 B", "main", "other", "y"])
        self.page.evaluate("heapReport.set({zoom: 2})")
        self.assertNotIn("other", texts())
        picture = self.saved("png").read_bytes()
        self.assertEqual((picture[:8], struct.unpack(">II", picture[16:24])), (b"\x89PNG\r\n\x1a\n", (1400, 4 * 19)))

    def test_a_file_that_is_too_large_is_said(self):
        self.open(self.folded("main;load 70\n"))
        self.page.evaluate("EXPORTS[1].make = () => new FileText().add('x'.repeat(MOST_BYTES), 'x')")
        self.page.key("x")
        self.page.evaluate("document.querySelector('[data-export=folded]').click()")
        self.page.wait("document.querySelector('dialog [role=status]').textContent.includes('too large')")

    def test_the_peak_comes_first_when_it_is_much_more_than_the_end(self):
        self.open(self.trace.parent / "report.html")
        peak, live, shown = self.query("select peak_size, live_size, (select sum(cumulative) from flamegraph(0, 'space') where depth = 0) as shown "
                                       "from heap_dump where id = 0")[0].values()
        pressed = self.page.evaluate("document.querySelector('.moments [aria-pressed=true]').textContent")
        self.assertTrue(pressed.startswith("peak" if peak >= 1.2 * live else "end"), pressed)
        self.page.key("e")
        self.assertEqual(self.total(), shown)

    def test_a_search_tells_how_much_it_has_found(self):
        self.open(self.folded("main;load;parse 70\nmain;load;load 20\nmain;save 10\n"))
        for text, value in (("LOAD", 90), ("/^(parse|save)$/", 80), ("nothing", 0)):
            self.page.key("/")
            self.page.evaluate("document.activeElement.select()")
            self.page.type(text)
            self.assertEqual(self.page.evaluate("document.getElementById('found').dataset.value"), str(value), text)
            self.page.key("Escape")
        self.page.key("/")
        self.page.evaluate("document.activeElement.select()")
        self.page.type("/(/")
        self.assertEqual(self.page.evaluate("document.getElementById('found').textContent"), "no regular expression")

    def test_keys_walk_zoom_and_go_back(self):
        self.open(self.folded("main;load;parse 70\nmain;load 20\nmain;save 10\n"), "#page=flame")
        state = lambda: self.page.evaluate("({zoom: heapReport.state.zoom, selected: "
                                           "document.getElementById('selection').textContent})")
        for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight"):
            self.page.key(key)
        self.assertTrue(state()["selected"].startswith("save: 10 B (10%)"), state())
        self.page.key("ArrowLeft")
        self.page.key("Enter")
        self.assertTrue(state()["zoom"] > 0 and state()["selected"].startswith("load: 90 B (90%)"), state())
        self.page.evaluate("history.back()")
        self.page.wait("heapReport.state.zoom === 0")
        self.page.key("c")
        self.page.key("b")
        self.assertEqual(self.page.evaluate("[heapReport.state.isInverted, heapReport.tree.total()]"), [True, 100])

    def test_a_click_zooms_and_a_link_restores_everything(self):
        page = self.folded("main;load;parse 70\nmain;load 20\nmain;save 10\n")
        self.open(page, "#page=flame")
        place = self.page.evaluate("(({x, y}) => [x, y])(document.querySelector('.flame').getBoundingClientRect())")
        self.page.click(place[0] + 20, place[1] + 19 * 2 + 5)
        self.assertIn("zoom=2", self.page.evaluate("location.hash"))
        self.page.key("2")
        self.page.key("t")
        link = self.page.evaluate("location.hash")
        shown = "JSON.stringify([heapReport.state, document.documentElement.dataset.theme])"
        before = self.page.evaluate(shown)
        self.open(page, link)
        self.assertEqual(self.page.evaluate(shown), before)

    def test_the_zoomed_stack_stays_when_the_value_changes(self):
        self.open(self.trace.parent / "report.html", "#page=flame&moment=0")
        name = "heapReport.report.functions.name(heapReport.tree.functions[heapReport.state.zoom])"
        self.page.evaluate("heapReport.set({zoom: heapReport.tree.functions.findIndex((fn) => "
                           "heapReport.report.functions.name(fn) === 'leaks_huge')})")
        entries = self.page.evaluate("history.length")
        numbers = set()
        for key in "12341":  # the largest by live bytes, one of the smallest by allocated objects
            self.page.key(key)
            self.assertEqual(self.page.evaluate(name), "leaks_huge", key)
            numbers.add(self.page.evaluate("heapReport.state.zoom"))
        self.assertGreater(len(numbers), 1)
        self.assertEqual(self.page.evaluate("history.length"), entries, "the back button undoes zooms, not values")

    def test_the_flame_graph_shows_the_zoomed_box_and_stays_where_it_is(self):
        page = self.folded(";".join(f"f{i}" for i in range(100)) + " 100\n", "scroll")
        self.open(page, "#page=flame&zoom=60")
        top = lambda: self.page.evaluate("document.querySelector('.flame').scrollTop / 19")
        self.assertEqual(top(), 57, "of a link")
        for key in ("t", "/", "f", "9", "Escape", "1"):
            self.page.key(key)
            self.assertEqual(top(), 57, key)
        self.page.evaluate("heapReport.set({zoom: 61})")
        self.assertEqual(top(), 58)
        for key in ("o", "f"):
            self.page.key(key)
        self.assertEqual(top(), 58, "of a page that was left")

    def test_a_dump_at_the_maximum_has_its_tree_on_the_timeline(self):
        out = self.directory / "maximum"
        subprocess.run([HEAP_PROFILE, "-q", "-i", "1", "--dump-at-max", "-o", out, "--", program("known_stacks")],
                       capture_output=True, check=True)
        self.open(out / "report.html", "#page=timeline")
        rows = self.page.evaluate("[...document.querySelectorAll('table:not(.series) tbody tr')].map((row) => row.lastChild.textContent)")
        self.assertEqual(set(rows), {"Flame graph"})

    def test_the_focus_and_the_caret_stay(self):
        self.open(self.folded("main;load;parse 70\nmain;load 20\nmain;save 10\n"))
        self.page.key("/")
        self.page.type("pase")
        self.page.evaluate("document.activeElement.setSelectionRange(2, 2)")
        for letter in "rr":
            self.page.type(letter)
        self.assertEqual(self.page.evaluate("[document.activeElement.value, document.activeElement.selectionStart, "
                                            "heapReport.state.query]"), ["parrse", 4, "parrse"])
        focused = "document.activeElement.textContent"
        for name in ("Functions", "Total", "Live bytes", "Flame graph", "Bottom-up"):
            self.page.evaluate("[...document.querySelectorAll('button')].find((one) => "
                               f"one.textContent === {name!r}).focus()")
            self.page.key("Enter")
            self.assertEqual(self.page.evaluate(focused), name)
        self.assertEqual(self.page.evaluate("[heapReport.state.page, heapReport.state.sort, heapReport.state.isInverted]"),
                         ["flame", "total", True])

    def test_a_page_that_a_key_has_led_to_is_where_the_next_tab_goes(self):
        self.open(self.trace.parent / "report.html")
        for key in PAGES:
            self.page.key(key)
            self.assertEqual(self.page.evaluate("document.activeElement.id"), "page", key)
        self.page.key("u")
        self.page.key("Tab")
        self.assertTrue(self.page.evaluate("document.activeElement.matches('#page .chip button')"))
        self.page.key("Tab")
        self.assertTrue(self.page.evaluate("document.activeElement.matches('#page th button')"))
        self.page.key("Enter")
        self.assertTrue(self.page.evaluate("document.activeElement.matches('#page th button')"), "and stays there")

    def test_a_text_that_is_being_composed_is_not_searched_yet(self):
        self.open(self.folded("main;load;parse 70\nmain;load 20\nmain;save 10\n"))
        self.page.key("/")
        self.page.call("Input.imeSetComposition", text="sav", selectionStart=3, selectionEnd=3)
        self.assertEqual(self.page.evaluate("[heapReport.state.query, document.activeElement.value]"), ["", "sav"])
        self.page.type("save")
        self.assertEqual(self.page.evaluate("[heapReport.state.query, document.activeElement.value]"), ["save", "save"])

    def test_walking_stays_in_what_is_drawn_and_matches_are_drawn(self):
        self.open(self.folded("main;a;hit 70\nmain;b;hit 20\nmain;c;hit 10\n", "matches"), "#page=flame&zoom=2&q=hit")
        shown = lambda: self.page.evaluate("[heapReport.report.functions.name(heapReport.tree.functions["
                                           "heapReport.tree.parents[heapReport.flame.selected]]), heapReport.state.zoom]")
        self.page.key("N")
        self.assertEqual(shown(), ["c", 0], "backwards from the first is the last")
        for caller in "abc":
            self.page.key("n")
            self.assertEqual(shown(), [caller, 0])
        self.page.evaluate("heapReport.set({zoom: 2})")
        self.page.evaluate("heapReport.flame.select(2)")
        self.page.key("ArrowRight")
        self.assertEqual(self.page.evaluate("heapReport.flame.selected"), 2)
        self.page.evaluate("document.querySelector('[data-view=space]').focus()")
        self.page.key("ArrowDown")
        self.page.key("Enter")
        self.assertEqual(self.page.evaluate("heapReport.state.zoom"), 3, "Enter is about the box, not the button")

    def test_keys_are_about_the_menu_while_it_is_open(self):
        self.open(self.folded("main;load;parse 70\nmain;load 20\nmain;save 10\n"), "#page=flame")
        self.page.evaluate("heapReport.flame.select(2)")
        self.page.key("m")
        focused = "document.activeElement.textContent"
        for key, item in (("ArrowUp", "Copy stack"), ("ArrowDown", "Zoom"), ("2", "Zoom"), ("b", "Zoom"),
                          ("ArrowDown", "Only stacks with this function")):
            self.page.key(key)
            self.assertEqual(self.page.evaluate(focused), item, key)
        self.assertEqual(self.page.evaluate("[heapReport.state.view, heapReport.flame.selected]"), ["space", 2])
        self.page.key("Escape")
        self.assertEqual(self.page.evaluate("[document.querySelectorAll('.menu').length, "
                                            "document.activeElement.className]"), [0, "flame"])
        self.page.key("m")
        self.page.key("ArrowDown")
        self.page.key("Enter")
        self.assertEqual(self.total(), 90)

    def test_what_stands_for_many_functions_offers_no_filters(self):
        self.open(self.folded("main;load 70\n"), "#page=flame")
        self.page.evaluate("heapReport.tree.functions[2] = LEFT_OUT_FUNCTION")
        self.page.evaluate("heapReport.flame.select(2)")
        self.page.key("m")
        self.assertEqual(self.page.evaluate("[...document.querySelectorAll('.menu button')].map((one) => one.textContent)"),
                         ["Zoom", "Copy name", "Copy stack"])

    def test_a_page_without_a_heap_has_its_keys(self):
        out = self.directory / "empty"
        subprocess.run([HEAP_PROFILE, "-q", "-n", "nobody", "-o", out, "--", "/bin/true"], capture_output=True, check=True)
        self.open(out / "report.html")
        self.assertFalse(self.page.evaluate("Boolean(heapReport.heap)"))
        theme = self.page.evaluate("document.documentElement.dataset.theme")
        self.page.key("t")
        self.page.key("q")
        self.assertNotEqual(self.page.evaluate("document.documentElement.dataset.theme"), theme)
        self.assertEqual(self.page.evaluate("heapReport.state.page"), "quality")
        self.page.key("?")
        self.assertTrue(self.page.evaluate("document.querySelector('dialog').open"))

    def test_times_are_rounded_once(self):
        self.open(self.folded("main;f 1\n"))
        for seconds, text in ((0.5, "500 ms"), (59.94, "59.9 s"), (59.97, "1 min 0 s"), (119.7, "2 min 0 s"),
                              (3599.7, "1 h 0 min"), (7260, "2 h 1 min")):
            self.assertEqual(self.page.evaluate(f"formatSeconds({seconds})"), text)

    def test_the_timeline_ends_with_the_process(self):
        self.open(self.trace.parent / "report.html")
        self.assertTrue(self.page.evaluate("""(() => {
          const { report, heap } = heapReport, { upid, ts } = heap.end.dump;
          report.memory.push({ upid, ts: ts - 5, value: 1 }, { upid, ts: ts + 1e9, value: 2 });
          const { points, resident } = timelineOf(report, upid, heap.name);
          return resident.at(-1).value === 2 && resident.at(-1).time === points.at(-1).time;
        })()"""))

    def test_the_last_of_many_dumps_have_their_numbers(self):
        self.open(self.trace.parent / "report.html")
        self.page.evaluate("heapReport.report.dumps = Array.from({length: 1500}, (_, i) => "
                           "({...heapReport.heap.end.dump, label: null, live_size: i * 1024}))")
        self.page.key("i")
        rows = self.page.evaluate("[...document.querySelectorAll('table:not(.series) tbody tr')].map((row) => "
                                  "[row.cells[0].textContent, row.cells[3].textContent])")
        self.assertEqual(len(rows), 1000)
        self.assertEqual(rows[0], ["501", "▲ +1.00 KiB"])

    def test_few_trees_are_remembered(self):
        self.open(self.trace.parent / "report.html")
        for key in "1234":
            self.page.key(key)
        self.assertLessEqual(self.page.evaluate("[...heapReport.cache.values()].filter((one) => one instanceof Tree).length"), 6)
        self.assertTrue(self.page.evaluate("[...heapReport.cache.values()].includes(heapReport.tree)"))

    def test_filters_are_chips_that_can_be_removed(self):
        filters = lambda kind, text: "#page=flame&filters=" + json.dumps([{"kind": kind, "text": text}])
        page = self.folded("main;load;parse 70\nmain;load 20\nmain;save 10\n")
        for kind, text, total, nodes in (("keep", "parse", 70, 4), ("hide", "parse", 30, 4), ("merge", "load", 100, 4),
                                         ("from", "load", 90, 3)):
            self.open(page, filters(kind, text))
            self.assertEqual(self.page.evaluate("[heapReport.tree.total(), heapReport.tree.count]"), [total, nodes], kind)
        self.page.evaluate("document.querySelector('.chip button').focus()")
        self.page.key("Enter")
        self.assertEqual(self.total(), 100)
        self.assertEqual(self.page.evaluate("document.activeElement.id"), "page", "keys go on from the page, not from its very beginning")

    def test_what_has_no_filters_says_so(self):
        page = self.folded("main;load;parse 70\nmain;load 20\nmain;save 10\n")
        says = lambda: "filters do not count here" in self.page.evaluate("document.getElementById('page').textContent")
        chosen = json.dumps([{"kind": "hide", "text": "parse"}])
        for key, is_filtered in (("overview", False), ("flame", True), ("functions", True)):
            for state in "", "&filters=none", f"&filters={chosen}":
                self.open(page, f"#page={key}{state}")
                self.assertEqual(says(), state.endswith(chosen) and not is_filtered, key + state)
        self.open(self.trace.parent / "report.html", f"#page=sizes&filters={chosen}")
        self.assertTrue(says())

    def test_both_themes_are_those_of_the_system(self):
        for theme in ("light", "dark"):
            self.page.theme(theme)
            self.open(self.trace.parent / "report.html")
            self.assertEqual(self.page.evaluate("document.documentElement.dataset.theme"), theme)
            bright = self.page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0] > 128")
            self.assertEqual(bright, theme == "light")

    def test_every_key_of_the_list_does_what_it_says(self):
        self.open(self.trace.parent / "report.html", "#page=flame")
        self.page.key("?")
        listed = self.page.evaluate("[...document.querySelectorAll('dialog kbd')].flatMap((one) => one.textContent.split(' '))")
        self.page.key("Escape")
        for key, (before, after) in KEYS.items():
            with self.subTest(key=key):
                self.open(self.trace.parent / "report.html", "#page=flame")
                for one in before:
                    self.page.evaluate(one[3:]) if one.startswith("js:") else self.page.key(one)
                self.assertFalse(self.page.evaluate(after), "it is so already")
                self.page.key(key)
                self.assertTrue(self.page.evaluate(after))
        arrows = {"←": "ArrowLeft", "→": "ArrowRight", "↑": "ArrowUp", "↓": "ArrowDown"}
        self.assertEqual(sorted({arrows.get(key, key) for key in listed} - set(KEYS)), [], "keys without a test")
        self.assertEqual(self.page.evaluate("heapReport.pages.map((page) => page.letter).join('')"), PAGES)

    def test_every_export_is_saved(self):
        self.open(self.trace.parent / "report.html", "#page=flame")
        self.page.key("x")
        kinds = self.page.evaluate("[...document.querySelectorAll('[data-export]')].map((one) => one.dataset.export)")
        self.page.key("Escape")
        begins = {"pb.gz": rb"\x1f\x8b", "folded": rb"[^\n]+;[^\n]+ \d+\n", "speedscope.json": rb"{", "csv": rb"function,", "svg": rb"<svg ", "png": rb"\x89PNG"}
        self.assertEqual(sorted(kinds), sorted(begins))
        for kind in kinds:
            self.assertRegex(self.saved(kind).read_bytes(), rb"\A" + begins[kind], kind)

    def test_texts_can_be_read_in_both_themes(self):
        for theme in ("light", "dark"):
            self.page.theme(theme)
            self.open(self.trace.parent / "report.html")
            for key in PAGES:
                self.page.key(key)
                self.assertEqual(self.page.evaluate(FAINT_TEXTS), [], f"{theme}, page {key}")

    def test_signs_of_changes_are_told_apart_by_all_eyes(self):
        for theme in ("light", "dark"):
            self.page.theme(theme)
            self.open(self.trace.parent / "report.html")
            grown, little_grown, shrunk, little_shrunk = self.page.evaluate(CHANGE_COLORS)
            for eyes, matrix in EYES.items():
                for one, other in ((grown, shrunk), (little_grown, little_shrunk)):
                    self.assertGreaterEqual(color_distance(one, other, matrix), 20, f"{theme}, {eyes}")

    def test_every_page_shows_something_at_every_width(self):
        for width in (1600, 1000, 420):
            self.page.size(width, 800)
            for key in PAGES:
                self.open(self.trace.parent / "report.html")
                self.page.key(key)
                self.assertGreater(len(self.page.evaluate("document.getElementById('page').textContent")), 30)
                self.assertLessEqual(self.page.evaluate("document.documentElement.scrollWidth"), width)

    def test_names_never_become_html(self):
        self.open(self.folded(b"".join(name.replace(" ", "\t").encode() + b";x 1\n" for name in HOSTILE)))
        for key in PAGES:
            self.page.key(key)
            self.assertEqual(self.page.evaluate("[document.querySelectorAll('img, iframe, object').length, "
                                                "document.scripts.length]"), [0, 1])
        self.page.key("u")
        self.assertIn("<img", self.page.evaluate("document.getElementById('page').textContent"))
        self.assertNotIn("\u202e", self.page.evaluate("document.body.textContent"))

    def test_deep_stacks_and_long_names_open(self):
        deep = ";".join(f"f{i % 50}" for i in range(10000)) + " 1000\n"
        self.open(self.folded(deep, "deep"), "#page=flame")
        self.assertGreater(self.page.evaluate("heapReport.tree.height"), 1000)
        self.page.key("b")
        self.assertEqual(self.total(), 1000)
        self.open(self.folded("main;f 1\n" + "x" * ((1 << 20) - 100) + ";y 6\n", "long"))
        for key in PAGES:
            self.page.key(key)
        self.assertEqual(self.total(), 7)

    def test_nothing_is_explained(self):
        out = self.directory / "nothing"
        subprocess.run([HEAP_PROFILE, "-q", "-i", "100000000", "-o", out, "--", "/bin/true"], capture_output=True)
        self.open(out / "report.html")
        text = self.page.evaluate("document.getElementById('empty').textContent")
        self.assertGreater(len(text), 40)

    def test_a_browser_that_is_too_old_is_told_so(self):
        self.page.call("Page.addScriptToEvaluateOnNewDocument",
                       source="delete Object.hasOwn; delete Element.prototype.replaceChildren;")
        self.open(self.trace.parent / "report.html")
        self.assertIn("too old", self.page.evaluate("document.body.textContent"))
        self.page.complaints.clear()  # the browser's own line about the failure

    def test_what_is_broken_is_said(self):
        page = self.directory / "broken.html"
        text = (self.trace.parent / "report.html").read_text()
        at = text.index("application/octet-stream\">") + len("application/octet-stream\">")
        page.write_text(text[:at] + "H4sI" + text[text.index("</script>", at):])
        self.open(page)
        self.assertIn("cannot be shown", self.page.evaluate("document.body.textContent"))
        self.page.complaints.clear()  # the browser's own line about the failure


if __name__ == "__main__":
    unittest.main()
