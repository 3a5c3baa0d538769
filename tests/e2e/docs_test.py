"""Every command that README and docs show runs as it stands there."""

import gzip
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

from profile_run import program, run
from running_process import MAY_ATTACH, MAY_CATCH, Running

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
COMPAT = os.environ["COMPAT"]
TOOLS = ("heap_profile", "traceconv", "trace_processor_shell", "hprof-conv", "perfetto", "heapprofd", "bpftrace", "cat", "cmake")
# Shown where another test runs them: page, and how they begin.
ELSEWHERE = [
    ("docs/hprof.md", ("heap_profile ", "hprof-conv ")),  # hprof_test, java_test
    ("README.md", ("heap_profile java ",)),  # java_test
    ("docs/terminal.md", ("heap_profile top ",)),  # top_test
    ("docs/custom-allocators.md", ("bpftrace ",)),  # custom_heaps_test
]
PATIENCE = 120
SOURCE = "#include <map>\n#include <string>\nint main() { return std::map<std::string, int>{{\"a\", 1}}.size() - 1; }\n"


def pages():
    yield "README.md"
    for name in sorted(os.listdir(os.path.join(ROOT, "docs"))):
        if name.endswith(".md") and name != "benchmarks.md":  # hours
            yield "docs/" + name


def commands():
    """(page, command) for each command line in a block of code."""
    for page in pages():
        with open(os.path.join(ROOT, page)) as file:
            blocks = re.findall(r"^```\n(.*?)^```", file.read(), re.DOTALL | re.MULTILINE)
        for line in "".join(blocks).splitlines():
            line = line.removeprefix("$ ")
            word = re.sub(r"^([A-Z_]+=\S+ )*(tools/)?", "", line).split(" ")[0]
            if word in TOOLS and not any(page == other and line.startswith(begins) for other, begins in ELSEWHERE):
                yield page, line


class Commands(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.holder.cleanup)
        cls.directory = cls.holder.name
        os.symlink(COMPAT, cls.path("tools"))
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
        with Running([program("patient"), "1"], stdin=subprocess.PIPE) as patient:
            for page, command in commands():
                seen += 1
                runs_until_ctrl_c = re.search(r" -[pn] ", command) and " doctor " not in command
                if runs_until_ctrl_c and not (MAY_CATCH if " -n " in command else MAY_ATTACH):
                    continue
                command = command.replace("PROGRAM ARGUMENTS", "/bin/ls /").replace("PID", str(patient.pid))
                command = command.replace("NAME ", "patient ")
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
        self.assertGreater(seen, 12)


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
