"""How far a recording can be trusted, by its own figures: stacks walked in the target equal those that
elfutils finds in a copy, and nothing is lost."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import unittest

from profile_run import HEAP_PROFILE, program, run
from service_run import wait_for


def figures_of(command, options=("-i", "512")):
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "stats.json")
        result = run(command, options, {"HEAPPROFD_STATS_JSON": path})
        with open(path) as file:
            return result, json.load(file)


class Quality(unittest.TestCase):
    def check(self, command, options=("-i", "512")):
        result, figures = figures_of(command, options)
        self.assertEqual(result.exit_code, 0, result.stderr)
        self.assertGreater(figures["samples"], 1000)
        self.assertEqual(figures["walked_samples"] + figures["copied_samples"], figures["samples"])
        self.assertEqual(figures["agreed_samples"], figures["checked_samples"])
        self.assertEqual(figures["lost_records"], 0)
        self.assertEqual(figures["unwind_errors"], 0)
        return figures

    def test_python(self):
        self.check(["/usr/bin/python3", "-c", "import json, email.message, http.client, unittest, decimal"])

    def test_sqlite(self):
        figures = self.check(["sqlite3", ":memory:", "create table t(a, b); insert into t select value, hex(randomblob(50)) "
                    "from generate_series(1, 20000); create index i on t(b); select count(distinct b) from t;"])
        self.assertGreater(figures["checked_samples"], 0)  # the others may end before a check is due

    def test_perl(self):
        self.check(["perl", "-MPOSIX", "-e", "my %h; push @{$h{$_ % 97}}, \"x$_\" for 1..20000; print keys(%h) + 0"])

    @unittest.skipUnless(os.path.exists(program("patient_musl_dynamic")), "no musl-gcc here")
    def test_musl_whose_own_code_has_no_unwind_information(self):
        self.check([program("patient_musl_dynamic"), "10"])

    def test_a_compiler(self):
        with tempfile.TemporaryDirectory() as directory:
            source = os.path.join(directory, "a.cc")
            with open(source, "w") as file:
                file.write("#include <map>\n#include <string>\nstd::map<std::string, int> m;\n"
                           "int f(const std::string& s) { return m[s] += 1; }\n")
            self.check(["g++", "-O2", "-c", source, "-o", os.path.join(directory, "a.o")], ["-i", "4096"])

    @unittest.skipUnless(shutil.which("clang++-14"), "no clang here")
    def test_clang(self):
        with tempfile.TemporaryDirectory() as directory:
            source = os.path.join(directory, "a.cc")
            with open(source, "w") as file:
                file.write("#include <vector>\nint f(std::vector<int>& v) { v.push_back(1); return v[0]; }\n")
            self.check(["clang++-14", "-O2", "-c", source, "-o", os.path.join(directory, "a.o")], ["-i", "4096"])

    def test_a_thousand_threads(self):
        """Each record waits for space: whoever waits must neither slow the profiler down nor make others copy stacks."""
        result, figures = figures_of([program("rush"), "1000", "400000"], ["-i", "1"])
        self.assertEqual(result.exit_code, 0, result.stderr)
        self.assertEqual(figures["lost_records"], 0)
        self.assertEqual(result.main.of("rushed")["alloc_objects"], 400000)
        self.assertLess(figures["copied_samples"], 20000)

    def test_code_that_is_not_looked_at_before_its_program_is_killed(self):
        with tempfile.TemporaryDirectory() as directory:
            out, stats = os.path.join(directory, "out"), os.path.join(directory, "stats.json")
            command = [HEAP_PROFILE, "-i", "1", "--no-report", "-o", out, "--", program("late_load"), program("libplugin_a.so")]
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  env={**os.environ, "HEAPPROFD_STATS_JSON": stats}) as recorder:
                self.assertEqual(recorder.stdout.readline(), "ready\n")
                loader = self.child_of(recorder.pid)
                os.kill(recorder.pid, signal.SIGSTOP)
                recorder.stdin.write("go\n")
                recorder.stdin.flush()
                wait_for(lambda: self.is_dead(loader), "it is not killed")
                os.kill(recorder.pid, signal.SIGCONT)
                stderr = recorder.communicate(timeout=60)[1]
            with open(stats) as file:
                figures = json.load(file)
        self.assertEqual(figures["late_stacks"], figures["unwind_errors"])
        self.assertGreaterEqual(figures["late_stacks"], 300)
        self.assertIn(f"{figures['late_stacks']} stacks end early: the program had ended before the code there was looked at; "
                      "leave the profiler some processor time", stderr)
        self.assertNotIn("-fasynchronous-unwind-tables", stderr)

    @staticmethod
    def is_dead(pid):
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "Z"

    @staticmethod
    def child_of(pid):
        found = subprocess.run(["pgrep", "-P", str(pid), "late_load"], capture_output=True, text=True, check=True)
        return int(found.stdout)


if __name__ == "__main__":
    unittest.main()
