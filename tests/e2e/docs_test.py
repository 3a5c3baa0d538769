"""Every command that README and docs show runs as it stands there."""

import gzip
import http.server
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import unittest
import urllib.parse

from profile_run import HEAP_PROFILE, program, run
from running_process import MAY_ATTACH, MAY_CATCH, Attached, Running, child_named

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
COMPAT = os.environ["COMPAT"]
TOOLS = ("c++", "heap_profile", "traceconv", "trace_processor_shell", "hprof-conv", "java_heap_dump", "perfetto", "heapprofd",
         "bpftrace", "cat", "cmake", "curl")
# Shown where another test runs them: page, and how they begin.
ELSEWHERE = [
    ("docs/hprof.md", ("heap_profile ", "hprof-conv ")),  # hprof_test, java_test
    ("README.md", ("heap_profile java ", "heap_profile top ", "heap_profile leaks ")),  # java_test, top_test, docs/leaks.md
    ("docs/terminal.md", ("heap_profile top ",)),  # top_test
    ("docs/custom-allocators.md", ("bpftrace ",)),  # custom_heaps_test
    ("docs/android.md", ("",)),  # android_java_test
    ("docs/fleets.md", ("heap_profile doctor", "heap_profile record ", "curl ")),  # Fleets
]
# Where what is printed is shown, too: as of the program that the first of them builds.
SHOWN = ["docs/first-profile.md", "docs/leaks.md", "docs/peak.md"]
PATIENCE = 120
MIB = 1 << 20
SOURCE = "#include <map>\n#include <string>\nint main() { return std::map<std::string, int>{{\"a\", 1}}.size() - 1; }\n"


def pages():
    names = ["README.md", *SHOWN]
    for name in sorted(os.listdir(os.path.join(ROOT, "docs"))):
        if name.endswith(".md") and name != "benchmarks.md" and "docs/" + name not in SHOWN:  # hours
            names.append("docs/" + name)
    return names


def blocks(page):
    with open(os.path.join(ROOT, page)) as file:
        return re.findall(r"^```\n(.*?)^```", file.read(), re.DOTALL | re.MULTILINE)


def commands_in(block):
    for line in block.splitlines():
        line = line.removeprefix("$ ")
        if re.sub(r"^([A-Z_]+=\S+ )*(tools/)?", "", line).split(" ")[0] in TOOLS:
            yield line


def commands_in_tables(page):
    with open(os.path.join(ROOT, page)) as file:
        rows = [line for line in file if line.startswith("| ")]
    return re.findall(r"`(heap_profile [^`]+)`", "".join(rows))


def commands():
    """(page, command) for each command line in a block of code, and in the README's tables."""
    for page in pages():
        for line in [*commands_in("".join(blocks(page))), *(commands_in_tables(page) if page == "README.md" else [])]:
            if not any(page == other and line.startswith(begins) for other, begins in ELSEWHERE):
                yield page, line


class Places(unittest.TestCase):
    def test_what_is_to_be_changed_is_where_adding_says(self):
        with open(os.path.join(ROOT, "docs", "adding.md")) as file:
            text = file.read()
        paths = set(re.findall(r"`([a-z][\w./-]*/[\w.-]+\.(?:h|cc|py|js|proto|txt|awk|cmake|md))`", text)) - {"export/X.cc", "cli/X_command.cc"}
        self.assertGreater(len(paths), 40)
        for path in paths:
            self.assertTrue(any(os.path.exists(os.path.join(ROOT, place, path)) for place in ("", "src", "docs")), path)

    def test_no_change_is_said_to_touch_another_number_of_files(self):
        with open(os.path.join(ROOT, "docs", "adding.md")) as file:
            rows = re.findall(r"^\| [^|]+ \| (\d) \| (.+) \|$", file.read(), re.M)
        self.assertEqual(len(rows), 5)
        for count, files in rows:
            self.assertEqual(len(re.split(r", | and ", files)), int(count), files)
            self.assertLessEqual(int(count), 5)


class Commands(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.holder.cleanup)
        cls.directory = cls.holder.name
        os.symlink(COMPAT, cls.path("tools"))
        os.symlink(os.path.join(ROOT, "examples"), cls.path("examples"))
        os.mkdir(cls.path("dir"))
        shutil.copy(program("exits"), cls.path("dir"))
        recorded = run([program("exits"), "return"], ["-i", "1"])
        for name in ("raw-trace", "before.trace", "after.trace"):
            with open(cls.path(name), "wb") as file:
                file.write(recorded.trace_bytes)
        for name in ("before.pb.gz", "after.pb.gz"):
            with gzip.open(cls.path(name), "wb") as file:
                file.write(recorded.main.profile.SerializeToString())
        for name, text in (("queries.sql", "SELECT 1;\n"), ("big.cc", SOURCE)):
            with open(cls.path(name), "w") as file:
                file.write(text)

    @classmethod
    def path(cls, name):
        return os.path.join(cls.directory, name)

    def run_here(self, command, **more):
        env = {**os.environ, "PATH": COMPAT + ":" + os.environ["PATH"], "HEAPPROFD_DIRECTORY": self.path("service"),
               "TMPDIR": self.directory}
        return subprocess.Popen(["/bin/sh", "-c", command], cwd=self.directory, env=env, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)

    def record_until_ctrl_c(self, command, patient):
        """Something is allocated, then Ctrl-C, as a terminal does it: for all of the command."""
        process = self.run_here("exec " + command, start_new_session=True)
        said = ""
        while "Profiling active" not in said:
            line = process.stderr.readline()
            self.assertTrue(line, said)
            said += line
        patient.process.stdin.write("a\n")
        patient.process.stdin.flush()
        self.assertEqual(patient.process.stdout.readline(), "kept\n")
        os.killpg(process.pid, signal.SIGINT)
        stdout, stderr = process.communicate(timeout=PATIENCE)
        return process.returncode, stdout, said + stderr

    def view_until_ctrl_c(self, command):
        process = self.run_here("exec " + command, start_new_session=True)
        said = process.stdout.readline() + process.stderr.readline()
        os.killpg(process.pid, signal.SIGINT)
        stdout, stderr = process.communicate(timeout=PATIENCE)
        return process.returncode, said + stdout, stderr

    def test_every_command_works(self):
        seen = 0
        printed = dict.fromkeys(SHOWN, "")
        with Running([program("patient"), "1"], stdin=subprocess.PIPE) as patient:
            for page, command in commands():
                seen += 1
                runs_until_ctrl_c = re.search(r" -[pn] ", command) and " doctor " not in command
                if runs_until_ctrl_c and not (MAY_CATCH if " -n " in command else MAY_ATTACH):
                    continue
                command = command.replace("PROGRAM ARGUMENTS", "/bin/ls /").replace("PID", str(patient.pid))
                command = re.sub(r"(?<= -n )NAME\b", "patient", command)
                with self.subTest(page=page, command=command):
                    if runs_until_ctrl_c:
                        code, stdout, stderr = self.record_until_ctrl_c(command, patient)
                    elif command.startswith("heap_profile view "):
                        code, stdout, stderr = self.view_until_ctrl_c(command)
                    else:
                        process = self.run_here(command)
                        stdout, stderr = process.communicate(timeout=PATIENCE)
                        code = process.returncode
                    self.assertEqual(code, 0, stdout + stderr)
                    if page in printed:
                        printed[page] += stdout + stderr
        self.assertGreater(seen, 12)
        for page, text in printed.items():
            self.assert_shows(page, text)

    def assert_shows(self, page, text):
        """Figures differ from run to run, and with them one or many; words do not."""
        for block in blocks(page):
            if not list(commands_in(block)):
                for word in re.findall(r"[A-Za-z_]{5,}", block):
                    self.assertIn(word.rstrip("s"), text, page)


class Receiver(http.server.BaseHTTPRequestHandler):
    """Stands in for an engine: keeps what it was sent, and answers with the server's status."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.append((self.path, dict(self.headers), body))
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *_):
        pass


class Fleets(unittest.TestCase):
    """What docs/fleets.md has for each host, in its order, and for engines."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.directory = holder.name
        with open(os.path.join(ROOT, "docs/fleets.md")) as file:
            self.page = file.read()

    def command(self, begins):
        (command,) = [line for line in commands_in("".join(blocks("docs/fleets.md"))) if line.startswith(begins)]
        return command

    def start(self, command):
        env = {**os.environ, "PATH": COMPAT + ":" + os.environ["PATH"], "HEAPPROFD_DIRECTORY": self.directory + "/service"}
        return subprocess.Popen(["/bin/sh", "-c", command], cwd=self.directory, env=env, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def config(self, milliseconds):
        """The page's, for a shorter time."""
        (text,) = re.findall(r"(?:^    .*\n)+", self.page, re.MULTILINE)
        self.assertIn("duration_ms: 60000", text)
        text = text.replace("duration_ms: 60000", f"duration_ms: {milliseconds}").replace("dump_interval_ms: 20000", "dump_interval_ms: 100")
        with open(self.directory + "/fleet.config", "w") as file:
            file.write(text)

    def test_the_doctor_has_a_verdict(self):
        process = self.start(self.command("heap_profile doctor"))
        stdout, stderr = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 0 if "\nno  " not in "\n" + stdout else 1, stdout + stderr)

    @unittest.skipUnless(MAY_ATTACH, "needs root's rights, to attach")
    def test_a_recording_by_the_configuration_and_its_files(self):
        server = shutil.copy(program("patient"), self.directory + "/server")
        self.config(2000)
        with Running([server], stdin=subprocess.PIPE) as running:
            recording = self.start(self.command("heap_profile record"))
            while recording.poll() is None:
                for letter in "af":
                    running.process.stdin.write(letter)
                    running.process.stdin.flush()
                    running.process.stdout.readline()
            stdout, stderr = recording.communicate()
            pid = running.pid
        self.assertEqual((recording.returncode, stdout), (0, ""), stderr)
        profile = self.directory + "/profile"
        names = sorted(os.listdir(profile))
        self.assertIn("raw-trace", names)
        self.assertGreater(sum(re.fullmatch(rf"heap_dump\.\d+\.{pid}\.libc\.malloc\.pb\.gz", name) is not None for name in names), 1, names)
        self.assertEqual({os.stat(os.path.join(profile, name)).st_mode & 0o777 for name in names}, {0o600})

    def test_where_no_process_has_the_name_it_fails_with_4(self):
        self.config(100)
        process = self.start(self.command("heap_profile record"))
        _, stderr = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 4, stderr)

    def send(self, status):
        """What a receiver of our own gets by the page's command, and how that ends."""
        recorded = run([program("exits"), "return"], ["-i", "1"])
        self.sent = gzip.compress(recorded.main.profile.SerializeToString())
        with open(self.directory + "/after.pb.gz", "wb") as file:
            file.write(self.sent)
        with http.server.HTTPServer(("127.0.0.1", 0), Receiver) as server:
            server.received, server.status, server.timeout = [], status, PATIENCE
            command = self.command("curl ").replace("curl ", "curl --noproxy '*' ").replace("pyroscope:4040", f"127.0.0.1:{server.server_port}")
            command = command.replace("FROM", "1700000000").replace("UNTIL", "1700000060")
            thread = threading.Thread(target=server.handle_request)
            thread.start()
            process = self.start(command)
            _, stderr = process.communicate(timeout=PATIENCE)
            thread.join()
        return process.returncode, server.received, stderr

    @unittest.skipUnless(shutil.which("curl"), "no curl here")
    def test_pprof_for_an_engine_over_http(self):
        code, ((path, _, body),), stderr = self.send(200)
        self.assertEqual(code, 0, stderr)
        url = urllib.parse.urlsplit(path)
        self.assertEqual(url.path, "/ingest")
        self.assertEqual(urllib.parse.parse_qs(url.query), {"name": ["server{version=7}"], "from": ["1700000000"], "until": ["1700000060"],
                                                            "format": ["pprof"]})
        self.assertEqual(body, self.sent)

    @unittest.skipUnless(shutil.which("curl"), "no curl here")
    def test_what_an_engine_refuses_is_an_error(self):
        code, _, stderr = self.send(422)
        self.assertEqual(code, 22, stderr)  # curl's own
        self.assertIn("422", stderr)


def memory_of(pid):
    with open(f"/proc/{pid}/status") as status:
        return {name: int(value.split()[0]) * 1024 for name, value in (line.split(":") for line in status) if name.startswith("Vm")}


class Figures(unittest.TestCase):
    """What recording.md says that a program gets."""

    def assert_is_as_told(self, before, after, mib):
        self.assertAlmostEqual((after["VmSize"] - before["VmSize"]) / MIB, mib, delta=3)
        self.assertLess(after["VmRSS"] - before["VmRSS"], 1.5 * MIB)

    @unittest.skipUnless(MAY_ATTACH, "needs root's rights, to attach")
    def test_memory_that_stays_after_attaching(self):
        with Running([program("patient"), "1"], stdin=subprocess.PIPE) as patient:
            before = memory_of(patient.pid)
            self.assertIn(Attached(patient.pid, 50).result.returncode, (0, 4))  # it allocates nothing
            self.assert_is_as_told(before, memory_of(patient.pid), 25)

    def test_memory_of_the_library(self):
        with Running([program("patient")], stdin=subprocess.PIPE) as plain:
            before = memory_of(plain.pid)
        with tempfile.TemporaryDirectory() as directory:
            recorded = subprocess.Popen([HEAP_PROFILE, "-q", "-o", directory + "/out", "--", program("patient")], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self.assertEqual(recorded.stdout.readline(), "ready\n")
            after = memory_of(child_named(recorded.pid, "patient"))
            recorded.communicate("q", timeout=PATIENCE)
        self.assert_is_as_told(before, after, 18)


class Paths(unittest.TestCase):
    def test_every_file_that_is_named_exists(self):
        for page in pages():
            with open(os.path.join(ROOT, page)) as file:
                text = file.read()
            named = re.findall(r"`([a-z_0-9]+/[a-z_0-9/]+\.(?:cc|h|py|S|lds))`", text)
            named += [os.path.join(os.path.dirname(page), link) for link in re.findall(r"\]\(([^):#]+)\)", text)]
            for path in named:
                with self.subTest(page=page, path=path):
                    self.assertTrue(any(os.path.exists(os.path.join(ROOT, folder, path)) for folder in ("", "src", "tests", "include")))


if __name__ == "__main__":
    unittest.main()
