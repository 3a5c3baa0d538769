"""Names from a debuginfod server: Debian's own where it is installed, and servers that are of no help."""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

from interrupt_test import Terminal
from profile_run import HEAP_PROFILE, run
from symbols_test import SOURCE

DEADLINE_S = 60


def build_id(path):
    """Hexadecimal."""
    for line in subprocess.run(["readelf", "-n", path], check=True, capture_output=True, text=True).stdout.splitlines():
        if "Build ID:" in line:
            return line.split()[-1]
    raise ValueError(f"{path} has no build id")


@contextlib.contextmanager
def debuginfod(directory):
    """The address of a server of the files below `directory`."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    database = os.path.join(directory, "database")
    server = subprocess.Popen(["debuginfod", "-p", str(port), "-d", database, "-F", os.path.join(directory, "served")],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              env={**os.environ, "HOME": directory})
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


class SilentServer:
    """Takes connections and never answers."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.asked = threading.Event()
        self.connections = []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):  # closed
            while True:
                connection = self.socket.accept()[0]
                self.connections.append(connection)
                if connection.recv(1):
                    self.asked.set()

    def close(self):
        for connection in self.connections:
            connection.close()
        self.socket.close()


class Debuginfod(unittest.TestCase):
    """A stripped program whose debug information only a server has."""

    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="debuginfod_test_")
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        os.mkdir(os.path.join(self.directory, "served"))
        source = os.path.join(self.directory, "program.cc")
        with open(source, "w") as file:
            file.write(SOURCE)
        self.debug = os.path.join(self.directory, "served", "program.debug")
        self.program = os.path.join(self.directory, "program")
        subprocess.run(["g++", "-O2", "-g", "-fno-omit-frame-pointer", "-Wl,--build-id", source, "-o", self.program],
                       check=True)
        subprocess.run(["objcopy", "--only-keep-debug", self.program, self.debug], check=True)
        subprocess.run(["strip", "-s", self.program], check=True)
        self.env = {"XDG_CACHE_HOME": os.path.join(self.directory, "cache"), "HOME": self.directory,
                    "DEBUGINFOD_PROGRESS": ""}

    @unittest.skipUnless(shutil.which("debuginfod"), "debuginfod is not installed")
    def test_names_come_from_the_server_and_stay_in_the_cache(self):
        with debuginfod(self.directory) as url:
            end = time.monotonic() + DEADLINE_S
            ask = ["debuginfod-find", "debuginfo", build_id(self.program)]
            env = {**os.environ, **self.env, "DEBUGINFOD_URLS": url,
                   "DEBUGINFOD_CACHE_PATH": os.path.join(self.directory, "asked")}
            while subprocess.run(ask, env=env, capture_output=True).returncode != 0:  # it has not read the files yet
                self.assertLess(time.monotonic(), end)
                shutil.rmtree(os.path.join(self.directory, "asked"), ignore_errors=True)
                time.sleep(0.05)
            result = run([self.program], env={**self.env, "DEBUGINFOD_URLS": url})
        self.assertGreater(result.main.of("Hidden")["alloc_space"], 15_000_000)
        self.assertGreater(result.main.of("Inlined")["alloc_space"], 15_000_000)
        again = run([self.program], env={**self.env, "DEBUGINFOD_URLS": ""})
        self.assertGreater(again.main.of("Inlined")["alloc_space"], 15_000_000)

    def test_a_server_that_is_not_there_costs_the_names_only(self):
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{unused.getsockname()[1]}"
            result = run([self.program], env={**self.env, "DEBUGINFOD_URLS": url})
        self.assertEqual(result.exit_code, 0, result.stderr)
        self.assertGreater(result.main.total("alloc_space"), 15_000_000)
        self.assertIn("it has no symbols for them", result.stderr)

    def test_ctrl_c_ends_the_search_for_names_and_keeps_the_recording(self):
        server = SilentServer()
        self.addCleanup(server.close)
        output = os.path.join(self.directory, "out")
        profiler = subprocess.Popen([HEAP_PROFILE, "-o", output, "--", self.program], stderr=subprocess.PIPE, text=True,
                                    env={**os.environ, **self.env, "DEBUGINFOD_URLS": server.url},
                                    start_new_session=True)
        self.assertTrue(server.asked.wait(DEADLINE_S))
        begin = time.monotonic()
        os.killpg(profiler.pid, signal.SIGINT)  # as a terminal does
        _, stderr = profiler.communicate(timeout=DEADLINE_S)
        self.assertLess(time.monotonic() - begin, 10)
        self.assertEqual(profiler.returncode, 128 + signal.SIGINT, stderr)
        self.assertIn("the search for names was interrupted", stderr)
        self.assertIn(f"cannot make the report: it was interrupted; the trace is complete, heap_profile report {output}/raw-trace makes it", stderr)
        self.assertIn("Top live memory", stderr)
        done = subprocess.run([HEAP_PROFILE, "query", output + "/raw-trace",
                               "select sum(size) from heap_profile_allocation where size > 0"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(max(int(number) for number in re.findall(r"\d+", done.stdout)), 15_000_000)

    def test_a_terminal_shows_how_a_long_search_for_names_goes(self):
        server = SilentServer()
        self.addCleanup(server.close)
        variables = {**self.env, "DEBUGINFOD_URLS": server.url}
        terminal = Terminal(["/usr/bin/env", *(f"{name}={value}" for name, value in variables.items()), HEAP_PROFILE,
                             "--no-report", "-o", os.path.join(self.directory, "out"), "--", self.program], columns=120)
        self.addCleanup(terminal.close)
        terminal.wait_for("* looking up names, ")
        terminal.press(b"\x03")
        terminal.wait_for("the search for names was interrupted")
        self.assertEqual(terminal.exit_code(), 128 + signal.SIGINT)


if __name__ == "__main__":
    unittest.main()
