"""How far a recording can be trusted, by its own figures: stacks walked in the target equal those that
elfutils finds in a copy, and nothing is lost."""

import json
import os
import shutil
import tempfile
import unittest

from profile_run import program, run


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


if __name__ == "__main__":
    unittest.main()
