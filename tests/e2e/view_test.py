"""heap_profile view: the served page, what it answers, and what it does not."""

import http.client
import json
import os
import pathlib
import pty
import re
import select
import signal
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.parse

import pprof_pb2
from browser import CHROMIUM, WithPage
from hprof_dump import Dump
from profile_run import HEAP_PROFILE, script
from with_directory import WithRecording

PATIENCE = 120  # seconds
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


class Server:
    def __init__(self, *files, options=("--no-open",), **kwargs):
        self.process = subprocess.Popen([HEAP_PROFILE, "view", *options, *files], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, **kwargs)
        self.url = self.process.stdout.readline().strip()
        parts = urllib.parse.urlsplit(self.url)
        self.port, self.path = parts.port, parts.path

    def ask(self, path="", method="GET", body=None, headers=None, whole_path=None):
        """Status, headers and body of the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, whole_path or self.path + path, body=body, headers=headers or {})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def sql(self, text, parameters=""):
        status, _, body = self.ask("api/sql" + parameters, "POST", text)
        return status, json.loads(body)

    def say(self, data):
        """What comes back for these bytes, until the server closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as connection:
            connection.sendall(data)
            answer = b""
            while True:
                try:
                    part = connection.recv(65536)
                except ConnectionResetError:
                    return answer
                if not part:
                    return answer
                answer += part

    def silent(self, data):
        """A connection on which this was said, and nothing more."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        connection.sendall(data)
        return connection

    def end(self, number=signal.SIGINT):
        if self.process.poll() is None:
            self.process.send_signal(number)
        output = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, *output


class ViewTest(WithRecording):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.truth = json.loads(cls.printed)  # function: [alloc_count, alloc_bytes, live_count, live_bytes]
        cls.server = Server(cls.trace)
        cls.addClassCleanup(cls.server.end)


class ServingTest(ViewTest):
    def test_it_prints_its_address_alone_and_ends_on_request(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number=number):
                server = Server(self.trace)
                self.assertRegex(server.url, r"^http://127\.0\.0\.1:\d+/[0-9a-f]{32}/$")
                self.assertEqual(server.ask()[0], 200)
                code, stdout, stderr = server.end(number)
                self.assertEqual((code, stdout), (0, ""))
                self.assertIn("Ctrl-C ends it", stderr)
        self.assertNotEqual(server.url, self.server.url)

    def test_it_ends_when_nobody_asks(self):
        server = Server(self.trace, options=("--no-open", "--idle", "100ms"))
        _, stderr = server.process.communicate(timeout=PATIENCE)
        self.assertEqual(server.process.returncode, 0)
        self.assertIn("nobody has asked for anything", stderr)

    def test_it_ends_while_a_query_runs(self):
        server = Server(self.trace)
        with server.silent(b"POST %sapi/sql HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s"
                           % (server.path.encode(), len(ENDLESS), ENDLESS.encode())):
            self.assertEqual(server.end()[0], 0)

    def test_the_page_is_that_of_the_report_with_one_right_more(self):
        status, headers, page = self.server.ask()
        self.assertEqual(status, 200)
        report = self.directory / "report.html"
        subprocess.run([HEAP_PROFILE, "report", "-q", "-o", report, self.trace], check=True)
        before_data = lambda text: text[:text.index(b'<script id="data"')]
        self.assertEqual(before_data(page).replace(b"connect-src 'self'", b"connect-src 'none'"), before_data(report.read_bytes()))
        self.assertEqual(headers["Content-Security-Policy"], "frame-ancestors 'none'")
        self.assertIn(b'<script id="data" type="application/octet-stream"></script>', page)
        self.assertEqual(headers["Cache-Control"], "no-store")
        self.assertEqual(headers["Referrer-Policy"], "no-referrer")
        self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
        self.assertIsNone(headers["Access-Control-Allow-Origin"])

    def test_its_data_are_asked_for(self):
        status, headers, data = self.server.ask("data")
        self.assertEqual((status, headers["Content-Type"]), (200, "application/octet-stream"))
        self.assertTrue(data.startswith(b"hpdrep1\n"))
        self.assertEqual(headers["Content-Security-Policy"], "default-src 'none'; frame-ancestors 'none'")
        self.assertEqual(headers["Cross-Origin-Resource-Policy"], "same-origin")
        self.assertEqual(self.server.ask("data", "POST")[0], 404)
        self.assertEqual(self.server.ask("data", headers={"Origin": "http://evil.example"})[0], 403)

    def test_what_cannot_be_viewed_is_said(self):
        for arguments, code, text in ([[], 2, "no file is named; for example: heap_profile view raw-trace"], [["/none"], 1, "cannot"],
                                      [["--idle", "5", self.trace], 2, "it must be a time like"]):
            done = subprocess.run([HEAP_PROFILE, "view", *arguments], capture_output=True, text=True, timeout=PATIENCE, check=False)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertEqual(done.stdout, "")
            self.assertIn(text, done.stderr)

    def in_terminal(self, *options, display=":0"):
        """What xdg-open was given, by a server at a terminal; None: it was not asked."""
        place = pathlib.Path(tempfile.mkdtemp(dir=self.directory))
        told = place / "told"
        script(place, "xdg-open", "#!/bin/sh\n"
               f"{{ echo \"$1\"; stat -c %a \"$1\" \"$(dirname \"$1\")\"; cat \"$1\"; }} > {told}.new && mv {told}.new {told}\n")
        main, terminal = pty.openpty()
        environment = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
        process = subprocess.Popen([HEAP_PROFILE, "view", *options, self.trace], stdout=terminal, stderr=subprocess.DEVNULL,
                                   env={**environment, "PATH": f"{place}:{environment['PATH']}", "TMPDIR": str(place),
                                        **({"DISPLAY": display} if display else {})})
        os.close(terminal)
        with os.fdopen(main, "rb", buffering=0) as reader:
            self.assertTrue(select.select([reader], [], [], PATIENCE)[0])
            url = reader.read(1000).decode().strip()
            end = time.monotonic() + PATIENCE
            while display and "--no-open" not in options and not told.exists() and time.monotonic() < end:
                select.select([], [], [], 0.01)
            # A browser would have been started before this has an answer.
            with socket.create_connection(("127.0.0.1", urllib.parse.urlsplit(url).port), timeout=PATIENCE) as connection:
                connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
                self.assertIn(b" 403 ", connection.recv(1000))
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(timeout=PATIENCE), 0)
        left = [path.name for path in place.iterdir() if path.name not in ("xdg-open", "told")]
        self.assertEqual(left, [], "the file that leads to the page is gone")
        return url, told.read_text() if told.exists() else None

    def test_a_browser_is_led_there_without_telling_anybody_else(self):
        url, told = self.in_terminal()
        path, mode, directory_mode, html = told.split("\n", 3)
        self.assertNotIn(url.split("/")[-2], path, "arguments can be seen by everybody")
        self.assertEqual((mode, directory_mode), ("600", "700"))
        self.assertIn(f'content="0;url={url}"', html)

    def test_no_browser_is_opened_where_none_is_wanted(self):
        self.assertIsNone(self.in_terminal("--no-open")[1])
        self.assertIsNone(self.in_terminal(display=None)[1])


class HostileTest(ViewTest):
    def tearDown(self):
        self.assertEqual(self.server.ask()[0], 200, "it still serves")
        self.assertIsNone(self.server.process.poll())

    def test_who_does_not_know_the_token_sees_nothing(self):
        token = self.server.path.strip("/")
        for path in ("/", "/index.html", "/api/sql", "/data", f"/{token}", f"/{token[:-1]}/", f"/{token.upper()}x/", f"/x/../{token}/",
                     f"/{'0' * 32}/api/tables"):
            status, _, body = self.server.ask(whole_path=path)
            self.assertEqual(status, 404, path)
            self.assertNotIn(token.encode(), body)

    def test_names_that_were_made_to_lead_here_do_not(self):
        for host in ("evil.example", f"evil.example:{self.server.port}", "127.0.0.1.evil.example", ""):
            status, _, body = self.server.ask(headers={"Host": host})
            self.assertEqual(status, 403, host)
            self.assertIn("another host", json.loads(body)["error"])
        self.assertIn(b" 403 ", self.server.say(b"GET %s HTTP/1.0\r\n\r\n" % self.server.path.encode()), "no host at all")
        self.assertEqual(self.server.ask(headers={"Host": f"localhost:{self.server.port}"})[0], 200)
        self.assertIn(b" 400 ", self.server.say(b"GET %s HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n" % self.server.path.encode()))

    def test_other_pages_may_not_ask(self):
        for origin in ("http://evil.example", "null", f"http://127.0.0.1:{self.server.port + 1}"):
            for method, path in (("GET", ""), ("POST", "api/sql")):
                self.assertEqual(self.server.ask(path, method, headers={"Origin": origin})[0], 403, origin)
        own = {"Origin": f"http://127.0.0.1:{self.server.port}"}
        self.assertEqual(self.server.ask("api/sql", "POST", "SELECT 1", headers=own)[0], 200)

    def test_other_methods_have_no_answer(self):
        for method in ("PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"):
            self.assertEqual(self.server.ask(method=method)[0], 405, method)
        self.assertEqual(self.server.ask(method="POST", body="")[0], 404)
        self.assertEqual(self.server.ask("api/sql")[0], 405)

    def test_large_requests_are_refused_before_they_come(self):
        head = b"POST %sapi/sql HTTP/1.1\r\nHost: localhost\r\n" % self.server.path.encode()
        for length in (b"1000000000", b"65537"):
            self.assertIn(b" 413 ", self.server.say(head + b"Content-Length: " + length + b"\r\n\r\n"))
        self.assertIn(b" 413 ", self.server.say(head + b"Transfer-Encoding: chunked\r\n\r\n40000000\r\n"))
        self.assertIn(b" 400 ", self.server.say(head + b"Content-Length: 99999999999999999999999\r\n\r\n"))
        self.assertIn(b" 431 ", self.server.say(head + b"X: " + b"a" * 10000))
        self.assertIn(b" 431 ", self.server.say(b"GET /" + b"a" * 20000))
        self.assertIn(b" 431 ", self.server.say(head + b"X: y\r\n" * 3000))
        self.assertIn(b" 400 ", self.server.say(b"\x16\x03\x01 hello\r\n\r\n"))
        self.assertIn(b" 200 ", self.server.say(
            b"GET %s HTTP/1.1\r\nHost: localhost\r\nRange: bytes=%s\r\n\r\n" % (self.server.path.encode(), b"0-0," * 1500)))

    def test_who_stalls_hinders_nobody(self):
        half = b"POST %sapi/sql HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nSELECT" % self.server.path.encode()
        stalled = [self.server.silent(data) for data in (b"", b"GET / HT", half) * 60]
        try:
            self.assertEqual(self.server.ask()[0], 200)
            self.assertEqual(self.server.sql("SELECT 1")[0], 200)
            # Those that are left have their time.
            for connection in stalled:
                try:
                    self.assertEqual(connection.recv(100), b"")
                except ConnectionResetError:
                    pass
        finally:
            for connection in stalled:
                connection.close()

    def test_no_path_leads_to_a_file(self):
        for path in ("../../etc/passwd", "..%2f..%2fetc/passwd", "api/../../../etc/passwd", "api/source/etc/passwd", "report.html"):
            self.assertEqual(self.server.ask(path)[0], 404, path)
        for value in ("/etc/passwd", "../etc/passwd", "%2fetc%2fpasswd", "-1", "99999999999"):
            self.assertEqual(self.server.ask("api/source?id=" + value)[0], 400, value)
        status, _, body = self.server.ask("api/source?id=4294967294&name=/etc/passwd&file=/etc/passwd")
        self.assertEqual(status, 404)
        self.assertNotIn(b"root:", body)

    def test_sql_reads_and_does_nothing_else(self):
        victim = self.directory / "victim"
        for text in (f"ATTACH '{victim}' AS x", "CREATE TABLE t(a)", f"VACUUM INTO '{victim}'", "DROP TABLE heap_dump",
                     "INSERT INTO heap_dump(id) VALUES (1)", "UPDATE process SET pid = 1", "SELECT load_extension('/tmp/x.so')",
                     f"PRAGMA temp_store_directory = '{self.directory}'", f"SELECT writefile('{victim}', 'x')",
                     "SELECT readfile('/etc/passwd')", "SELECT fts3_tokenizer('simple')", "nonsense", "SELECT", "SELECT 1; nonsense"):
            status, answer = self.server.sql(text)
            self.assertEqual(status, 400, text)
            self.assertTrue(answer["error"] and answer["hint"], answer)
        self.assertFalse(victim.exists())
        self.assertEqual(self.server.ask("api/sql", "POST", b"SELECT '\xff\xfe'")[0], 200)

    def test_a_query_that_runs_for_ever_is_ended(self):
        status, answer = self.server.sql(ENDLESS)
        self.assertEqual(status, 503)
        self.assertEqual(answer["error"], "the answer took longer than 20.0 s and was given up")
        self.assertIn("heap_profile query", answer["hint"])

    def test_a_query_ends_with_its_client(self):
        for _ in range(4):  # which would take longer than one may, together
            connection = http.client.HTTPConnection("127.0.0.1", self.server.port)
            connection.request("POST", self.server.path + "api/sql", ENDLESS)
            connection.close()
        self.assertEqual(self.server.sql("SELECT 1")[1]["rows"], [[1]])

    def test_no_more_wait_than_have_room(self):
        waiting = [self.server.silent(b"POST %sapi/sql HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s"
                                      % (self.server.path.encode(), len(ENDLESS), ENDLESS.encode())) for _ in range(30)]
        try:
            while select.select(waiting, [], [], 0)[0] == []:
                self.assertIn(self.server.ask()[0], (200,))
            refused = select.select(waiting, [], [], 0)[0][0]
            self.assertIn(b" 503 ", refused.recv(100))
        finally:
            for connection in waiting:
                connection.close()
        end = time.monotonic() + PATIENCE
        while self.server.sql("SELECT 1")[0] != 200:
            self.assertLess(time.monotonic(), end)

    def test_answers_have_an_end(self):
        status, answer = self.server.sql(ENDLESS.replace("count(*)", "i"), "?limit=10000")
        self.assertEqual(status, 200)
        self.assertEqual((len(answer["rows"]), answer["is_cut"]), (10000, True))
        self.assertEqual(self.server.sql("SELECT 1", "?limit=10001")[0], 400)
        self.assertEqual(len(self.server.sql("SELECT zeroblob(60000000) UNION ALL SELECT 1")[1]["rows"]), 0)


class AnswersTest(ViewTest):
    def test_sql_answers_as_query_does(self):
        text = "SELECT name, self, cumulative FROM top('space', 20)"
        done = subprocess.run([HEAP_PROFILE, "query", "--json", self.trace, text], capture_output=True, text=True, check=True)
        status, answer = self.server.sql(text)
        self.assertEqual(status, 200)
        self.assertEqual([dict(zip(answer["columns"], row)) for row in answer["rows"]], json.loads(done.stdout))
        self.assertFalse(answer["is_cut"])

    def test_tables_are_those_that_can_be_asked(self):
        tables = json.loads(self.server.ask("api/tables")[2])["tables"]
        self.assertGreater(len(tables), 30)
        dump = next(table for table in tables if table["name"] == "heap_dump")
        self.assertEqual(self.server.sql("SELECT * FROM heap_dump LIMIT 1")[1]["columns"], dump["columns"])

    def test_exports_are_those_of_the_command(self):
        told = subprocess.run([HEAP_PROFILE, "export", "-h"], capture_output=True, text=True, check=True).stdout
        kinds = re.findall(r"^  ([a-z]+)  ", told.split("\nformats:\n")[1].split("\n\n")[0], re.M)
        self.assertIn("pprof", kinds)
        for kind in kinds:
            for view in ("space", "alloc_objects"):
                status, headers, body = self.server.ask(f"api/export?format={kind}&view={view}")
                self.assertEqual(status, 200)
                done = subprocess.run([HEAP_PROFILE, "export", "--format", kind, "--view", view, self.trace], capture_output=True,
                                      check=True)
                self.assertEqual(body, done.stdout, kind)
                self.assertIn("attachment; filename=\"heap.", headers["Content-Disposition"])

    def test_lines_of_source_have_their_bytes(self):
        (dump,), = self.server.sql("SELECT max(id) FROM heap_dump")[1]["rows"]
        sources = json.loads(self.server.ask(f"api/sources?dump={dump}")[2])["files"]
        file = next(file for file in sources if file["name"].endswith("/known_stacks.c"))
        answer = json.loads(self.server.ask(f"api/source?dump={dump}&id={file['id']}")[2])
        self.assertEqual("\n".join(answer["text"]).rstrip("\n"), pathlib.Path(file["name"]).read_text().rstrip("\n"))
        self.assertEqual(sum(own for _, own, _ in answer["lines"]), file["own"])
        lines = {line: (own, total) for line, own, total in answer["lines"]}
        for own, total in lines.values():
            self.assertLessEqual(own, total)
        # All that has a line is of one innermost line.
        (live,), = self.server.sql(f"SELECT sum(self) FROM flamegraph({dump}, 'space')")[1]["rows"]
        self.assertLessEqual(sum(file["own"] for file in sources), live)
        for name, (_, _, _, live_bytes) in self.truth.items():
            (line,) = [number for number, text in enumerate(answer["text"], 1) if text.startswith(f"KEEP({name},")]
            self.assertEqual(lines[line], (live_bytes, live_bytes), name)

    def test_a_line_holds_what_its_function_and_no_other_has_allocated(self):
        profile = pprof_pb2.Profile(string_table=["", "space", "bytes", "Parse(char*)", "/src/mine.cc", "std::vector<int>::push_back(int&&)",
                                                  "/usr/include/c++/12/bits/stl_vector.h", "inflate", "/usr/lib/libz.so.1"])
        profile.sample_type.add(type=1, unit=2)
        profile.mapping.add(id=1, filename=8)
        for number, (name, file, line) in enumerate(((3, 4, 7), (5, 6, 900), (7, 0, 0)), 1):
            profile.function.add(id=number, name=name, filename=file)
            profile.location.add(id=number, mapping_id=1).line.add(function_id=number, line=line)
        profile.location.add(id=4, mapping_id=1, address=64)  # nobody knows its name
        for stack, size in (([1], 1), ([2, 1], 20), ([3, 1], 400), ([4, 1], 8000), ([2], 50000)):
            profile.sample.add(location_id=stack, value=[size])
        path = self.directory / "holders.pb"
        path.write_bytes(profile.SerializeToString())
        server = Server(path)
        self.addCleanup(server.end)
        files = {file["name"]: file for file in json.loads(server.ask("api/sources")[2])["files"]}
        lines = {name: json.loads(server.ask(f"api/source?id={file['id']}")[2])["lines"] for name, file in files.items()}
        self.assertEqual(lines, {"/src/mine.cc": [[7, 21, 8421]], "/usr/include/c++/12/bits/stl_vector.h": [[900, 50000, 50020]]})

    def test_a_file_that_is_not_at_hand_is_said(self):
        gone = self.directory / "gone.cc"
        profile = pprof_pb2.Profile(string_table=["", "space", "bytes", "f", str(gone)])
        profile.sample_type.add(type=1, unit=2)
        profile.function.add(id=1, name=3, filename=4)
        profile.location.add(id=1).line.add(function_id=1, line=7)
        profile.sample.add(location_id=[1], value=[100])
        path = self.directory / "gone.pb"
        path.write_bytes(profile.SerializeToString())
        server = Server(path)
        self.addCleanup(server.end)
        (file,) = json.loads(server.ask("api/sources")[2])["files"]
        answer = json.loads(server.ask(f"api/source?id={file['id']}")[2])
        self.assertEqual((answer["name"], answer["lines"]), (str(gone), [[7, 100, 100]]))
        self.assertIn("there is no such file here", answer["reason"])
        self.assertNotIn("text", answer)
        os.mkfifo(gone)  # it would never be read to its end
        self.assertIn("cannot", json.loads(server.ask(f"api/source?id={file['id']}")[2])["reason"])


@unittest.skipUnless(CHROMIUM, "chromium is not installed")
class BrowserTest(WithPage, ViewTest):
    def tearDown(self):
        self.assertEqual(self.page.complaints, [])
        self.assertEqual([url for url in self.page.requests if not url.startswith((self.server.url, "blob:" + self.server.url[:20]))], [])

    def click(self, text):
        self.page.evaluate(f"[...document.querySelectorAll('button')].find((one) => one.textContent === {json.dumps(text)}).click()")

    def run_sql(self, text):
        self.page.evaluate(f"document.getElementById('sql').value = {json.dumps(text)}; document.getElementById('result').textContent = ''")
        self.click("Run")
        self.page.wait("document.getElementById('result').textContent !== ''")

    def test_every_page_opens(self):
        self.page.open(self.server.url)
        for key in self.page.evaluate("heapReport.pages.map((page) => page.letter)"):
            self.page.key("Escape")
            self.page.evaluate("document.activeElement.blur()")
            self.page.key(key)
            self.assertEqual(self.page.evaluate("heapReport.pageOf(" + json.dumps(key) + ")"), self.page.evaluate("heapReport.state.page"))
            self.assertNotEqual(self.page.evaluate("document.getElementById('page').textContent"), "")
        self.assertEqual(self.page.evaluate("heapReport.pages.length"), 13)

    def test_the_report_has_no_pages_that_need_a_server(self):
        report = self.directory / "report.html"
        subprocess.run([HEAP_PROFILE, "report", "-q", "-o", report, self.trace], check=True)
        self.page.open(report, "#page=sql")
        self.assertEqual(self.page.evaluate("heapReport.state.page"), "overview")
        self.assertEqual(self.page.evaluate("heapReport.pages.filter((page) => ['source', 'sql'].includes(page.key)).length"), 0)
        self.page.requests.clear()

    def test_of_a_managed_heap_nothing_is_asked_that_has_no_answer(self):
        dump = Dump(version="1.0.2").string(2, "next").load_class(20, "Node")
        dump.segment(dump.root(0xFF, 100), dump.class_dump(20, 0, [2]), dump.instance(100, 20, 0)).end()
        path = self.directory / "managed.hprof"
        path.write_bytes(dump.bytes)
        server = Server(path)
        self.addCleanup(server.end)
        self.page.open(server.url, "#page=source")
        self.assertIn("Of managed heaps no lines are known", self.page.evaluate("document.getElementById('page').textContent"))
        self.page.evaluate("showExports(heapReport)")
        self.assertEqual(self.page.evaluate("document.querySelectorAll('dialog a').length"), 0)
        self.assertIn("not of managed ones", self.page.evaluate("document.querySelector('dialog').textContent"))
        self.assertEqual([url for url in self.page.requests if "api/" in url], [])
        self.page.requests.clear()

    def test_questions_are_answered(self):
        self.page.open(self.server.url, "#page=sql")
        self.run_sql("SELECT 1 AS a, '<b>x</b>' AS b, NULL AS c, 9007199254740993 AS d")
        cells = "[...document.querySelectorAll('#result td')].map((one) => one.textContent)"
        self.assertEqual(self.page.evaluate(cells), ["1", "<b>x</b>", "NULL", "9007199254740993"])
        self.run_sql("SELECT absent")
        self.assertIn("no such column: absent", self.page.evaluate("document.getElementById('result').textContent"))
        self.assertEqual(len(self.page.complaints), 1, "the browser's own, of the status")
        self.page.complaints.clear()
        for i, (title, _) in enumerate(self.page.evaluate("heapReport.report.examples")):
            self.run_sql(self.page.evaluate(f"heapReport.report.examples[{i}][1]"))
            self.assertEqual(self.page.evaluate("document.querySelectorAll('#result .bad').length"), 0, title)
            self.assertGreater(self.page.evaluate("document.querySelectorAll('#result th').length"), 0, title)
        self.page.evaluate("document.querySelector('details').open = true")
        self.page.wait("document.querySelector('.tables').textContent.includes('heap_dump')")

    def test_what_a_query_shows_to_be_wrong_is_in_the_banner(self):
        self.page.open(self.server.url, "#page=sql")
        for text in ("2 classes are missing", "2 classes are missing", "3 classes"):
            self.page.evaluate(f"heapReport.addWarnings([{json.dumps(text)}])")
        self.assertIn("2 classes are missing (and 1 more)", self.page.evaluate("document.querySelector('.banner').textContent"))
        self.assertTrue(self.page.evaluate("document.getElementById('sql').isConnected"))

    def test_an_answer_becomes_a_flame_graph_and_a_file(self):
        self.page.open(self.server.url, "#page=sql")
        self.run_sql("SELECT 'main;f' AS stack, 70 AS value UNION ALL SELECT 'main;g', 30")
        self.click("Show as flame graph")
        self.page.wait("document.querySelector('#result .flame canvas') !== null")
        place = pathlib.Path(tempfile.mkdtemp(dir=self.directory))
        self.page.download_to(place)
        self.run_sql("SELECT 'a\"b' AS x, 1.5 AS y, NULL AS z UNION ALL SELECT '=1+1', 2, 3")
        self.click("Save as CSV")
        self.assertEqual(self.page.downloaded(place).read_text(), '"x","y","z"\n"a""b",1.5,\n"\'=1+1",2,3\n')

    def test_a_question_can_be_stopped(self):
        self.page.open(self.server.url, "#page=sql")
        self.page.evaluate(f"document.getElementById('sql').value = {json.dumps(ENDLESS)}")
        self.click("Run")
        self.click("Stop")
        self.page.wait("document.getElementById('result').textContent.includes('Stopped')")
        self.run_sql("SELECT 42")
        self.assertEqual(self.page.evaluate("document.querySelector('#result td').textContent"), "42")

    def test_source_has_bytes_at_its_lines(self):
        self.page.open(self.server.url, "#page=source")
        self.page.wait("document.querySelectorAll('#source tr.held').length > 0")
        self.page.evaluate("(() => { const files = document.querySelector('.files'); files.selectedIndex = "
                           "[...files.options].findIndex((one) => one.textContent.endsWith('/known_stacks.c')); "
                           "files.dispatchEvent(new Event('change')); })()")
        self.page.wait("document.querySelector('#source h2').textContent.endsWith('/known_stacks.c')")
        self.assertGreater(self.page.evaluate("document.querySelectorAll('#source tr.held').length"), 0)
        self.assertIn("malloc", self.page.evaluate("document.getElementById('source').textContent"))

    def test_of_a_large_source_file_what_is_near_most_memory_is_shown(self):
        self.page.open(self.server.url, "#page=source")
        rows, notes = self.page.evaluate("""(() => {
          const lines = Array.from({ length: 10000 }, (_, i) => [5 * i + 1, i === 7000 ? 1000 : i % 97, 2000]);
          const text = Array.from({ length: 50000 }, (_, i) => `line ${i + 1}`);
          const made = heapReport.sourcePage.annotated({ name: "large.cc", lines, count: 20000, text, is_cut: true });
          const rows = [...made.at(-1).querySelectorAll("tbody tr")].map((row) => Number(row.dataset.line));
          return [rows, made.map((one) => one.textContent).join(" ")];
        })()""")
        self.assertLess(len(rows), 4000)
        self.assertEqual(rows, sorted(set(rows)))
        self.assertIn(35001, rows)
        self.assertIn("Lines that hold least are left out: ", notes)
        beyond = self.page.evaluate("heapReport.sourcePage.annotated({ name: 'a', lines: [[9, 1, 1]], count: 1, text: ['x'], is_cut: false })"
                                    ".map((one) => one.textContent).join(' ')")
        self.assertIn("The profile has lines that the file here does not have.", beyond)
        indented = self.page.evaluate("heapReport.sourcePage.annotated({ name: 'a', lines: [[1, 1, 1]], count: 1, text: ['\\tx'], is_cut: false })"
                                      ".at(-1).querySelector('.code').textContent")
        self.assertEqual(indented, "\tx")
        # More than a call takes arguments.
        self.assertEqual(self.page.evaluate("largest(Array.from({ length: 1000000 }, (_, i) => i))"), 999999)

    def test_threads_have_their_memory(self):
        self.page.open(self.server.url, "#page=threads")
        (row,) = self.server.sql("SELECT count(*) FROM heap_profile_thread WHERE dump_id = (SELECT max(id) FROM heap_dump)")[1]["rows"]
        self.assertEqual(self.page.evaluate("document.querySelectorAll('main tbody tr').length"), row[0])

    def test_files_are_those_of_the_command(self):
        self.page.open(self.server.url)
        place = pathlib.Path(tempfile.mkdtemp(dir=self.directory))
        self.page.download_to(place)
        self.page.key("x")
        self.page.evaluate("[...document.querySelectorAll('dialog a')].find((one) => one.textContent === 'folded').click()")
        done = subprocess.run([HEAP_PROFILE, "export", "--format", "folded", self.trace], capture_output=True, check=True)
        self.assertEqual(self.page.downloaded(place).read_bytes(), done.stdout)

    def test_a_page_without_its_server_is_said(self):
        page = self.directory / "saved.html"
        page.write_bytes(self.server.ask()[2])
        self.page.open(page)
        self.assertIn("run heap_profile view again", self.page.evaluate("document.getElementById('app').textContent"))
        self.page.complaints.clear()  # of the data that is not there
        self.page.requests.clear()

    def test_a_server_that_has_ended_is_said(self):
        server = Server(self.trace)
        self.page.open(server.url, "#page=sql")
        server.end()
        self.run_sql("SELECT 1")
        self.assertIn("run heap_profile view again", self.page.evaluate("document.getElementById('result').textContent"))
        self.page.complaints.clear()  # of the connection that was refused
        self.page.requests.clear()


if __name__ == "__main__":
    unittest.main()
