"""Programs from Debian that nobody here wrote."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
import unittest

from profile_run import Started, run


class RealPrograms(unittest.TestCase):
    def test_python(self):
        result = run(["/usr/bin/python3", "-c", "import json; x = bytearray(10**7); print(len(x))"])
        self.assertEqual((result.exit_code, result.stdout), (0, "10000000\n"), result.stderr)
        self.assertGreaterEqual(result.main.total("alloc_space"), 10**7)

    def test_perl(self):
        result = run(["perl", "-e", 'my %h; $h{$_} = "x" x $_ for 1..3000; print scalar(keys %h)'])
        self.assertEqual((result.exit_code, result.stdout), (0, "3000"), result.stderr)
        self.assertGreater(result.main.total("alloc_space"), 4_000_000)

    def test_sqlite(self):
        sql = ("create table t(a, b); insert into t select value, hex(randomblob(20)) from generate_series(1, 5000);"
               "select count(*), sum(length(b)) from t;")
        result = run(["sqlite3", ":memory:", sql])
        self.assertEqual((result.exit_code, result.stdout), (0, "5000|200000\n"), result.stderr)
        self.assertGreater(result.main.total("alloc_objects"), 1000)

    def test_git_with_its_children(self):
        with tempfile.TemporaryDirectory() as directory:
            subprocess.run(["git", "init", "-q", directory], check=True)
            with open(os.path.join(directory, "file"), "w") as file:
                file.write("text\n" * 10000)
            result = run(["git", "-C", directory, "add", "file"], ["-i", "1"])
            self.assertEqual(result.exit_code, 0, result.stderr)
            self.assertGreater(result.main.total("alloc_objects"), 100)

    def test_the_compiler_driver_and_its_children(self):
        with tempfile.TemporaryDirectory() as directory:
            source = os.path.join(directory, "a.cc")
            with open(source, "w") as file:
                file.write("#include <string>\nstd::string f(int x) { return std::to_string(x); }\n")
            result = run(["g++", "-O1", "-c", source, "-o", os.path.join(directory, "a.o")])
            self.assertEqual(result.exit_code, 0, result.stderr)
            commands = " ".join(comment for pprof in result.pprofs for comment in pprof.comments)
            self.assertIn("cc1plus", commands)
            self.assertGreater(result.main.total("alloc_space"), 10_000_000)

    def test_redis_under_load(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        with tempfile.TemporaryDirectory() as directory:
            started = Started(["redis-server", "--port", port, "--save", "", "--dir", directory])
            cli = ["redis-cli", "-p", port]
            deadline = time.monotonic() + 30
            while subprocess.run([*cli, "ping"], capture_output=True, text=True).stdout != "PONG\n":
                self.assertLess(time.monotonic(), deadline, "redis-server does not answer")
            load = subprocess.run(["redis-benchmark", "-p", port, "-n", "20000", "-r", "10000", "-d", "100", "-q",
                                   "-t", "set,get,lpush"], capture_output=True, text=True)
            self.assertEqual(load.returncode, 0, load.stderr)
            subprocess.run([*cli, "shutdown", "nosave"], capture_output=True)
            result = started.finish()
        self.assertEqual(result.exit_code, 0, result.stderr)
        self.assertGreater(result.main.total("alloc_space"), 5_000_000)

    @unittest.skipUnless(shutil.which("java"), "no java here")
    def test_java(self):
        result = run(["java", "-Xint", "-version"])
        self.assertEqual(result.exit_code, 0, result.stderr)
        self.assertGreater(result.main.total("alloc_objects"), 100)


if __name__ == "__main__":
    unittest.main()
