"""The malloc family and the operators keep the rules of C, POSIX and C++ as they do without us: preloaded, dormant,
attached and detached again, over every allocator. What a rule is, and what only an observation, tests/programs/conformance says."""

import os
import signal
import subprocess
import tempfile
import threading
import unittest

from profile_run import HEAP_PROFILE, program
from running_process import MAY_ATTACH, changed_code_bytes

ALLOCATORS = {
    "glibc": None,
    "jemalloc": "libjemalloc.so.2",
    "tcmalloc": "libtcmalloc_minimal.so.4",
    "mimalloc": "libmimalloc.so.2",
}
PROGRAMS = ("malloc_rules", "new_rules", "replaced_new")
MUSL = program("malloc_rules_musl")
PRELOAD = os.path.join(os.environ["BUILD_DIRECTORY"], "src", "client", "libheapprofd_preload.so")
CASES = [(allocator, name) for allocator in ALLOCATORS for name in PROGRAMS]
PATIENCE = 200


def with_allocator(name, before=""):
    """The environment that has a program use this allocator, under one that stands before it."""
    libraries = [library for library in (before, ALLOCATORS[name]) if library]
    return {"LD_PRELOAD": " ".join(libraries)} if libraries else {}


def exit_code_of(process):
    return process.returncode if process.returncode >= 0 else 128 - process.returncode


def answers(command, env, rounds=1):
    """What a program says of its rules, and how it ends."""
    result = subprocess.run(command, env={**os.environ, **env}, input="\n" * rounds, stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, text=True, timeout=PATIENCE)
    return exit_code_of(result), result.stdout.splitlines()


class Conformance(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.directory = holder.name
        # Nobody else's service.
        self.env = {"HEAPPROFD_DIRECTORY": os.path.join(self.directory, "service")}

    def test_glibc_keeps_every_rule(self):
        for name in PROGRAMS:
            code, lines = answers([program(name), "1"], {})
            self.assertEqual((code, [line for line in lines if line.endswith(": 0")]), (0, []))

    def test_dormant(self):
        for allocator, name in CASES:
            with self.subTest(allocator=allocator, program=name):
                command = [program(name), "1"]
                plain = answers(command, with_allocator(allocator))
                self.assertEqual(answers(command, {**with_allocator(allocator, PRELOAD), **self.env}), plain)

    def recorded(self, command, env):
        with tempfile.TemporaryDirectory(dir=self.directory) as out:
            return answers([HEAP_PROFILE, "-q", "--no-report", "-i", "1", "-o", out, "--", *command], {**env, **self.env})

    def test_preloaded(self):
        for allocator, name in CASES:
            with self.subTest(allocator=allocator, program=name):
                command, env = [program(name), "1"], with_allocator(allocator)
                self.assertEqual(self.recorded(command, env), answers(command, env))

    @unittest.skipUnless(os.path.exists(MUSL), "no musl here")
    def test_preloaded_with_musl(self):
        command = [MUSL, "1"]
        self.assertEqual(self.recorded(command, {}), answers(command, {}))

    def read_until(self, process, last):
        """The lines of the program up to this one; all of them when it ends before."""
        lines = []
        for line in process.stdout:
            lines.append(line.rstrip("\n"))
            if lines[-1] == last:
                break
        return lines

    def ask(self, process):
        """A round of the rules."""
        try:
            os.write(process.stdin.fileno(), b"\n")
        except BrokenPipeError:  # it has ended; whether it does so without us is seen by the caller
            return []
        return self.read_until(process, "done")

    def end_in_time(self, process):
        """Whatever waits for what it says ends with it."""
        end = threading.Timer(PATIENCE, process.kill)
        end.start()
        self.addCleanup(end.cancel)

    def attach(self, process):
        tool = subprocess.Popen([HEAP_PROFILE, "--no-report", "-i", "1", "-o", os.path.join(self.directory, str(process.pid)),
                                 "-p", str(process.pid)], env={**os.environ, **self.env}, stdin=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True)
        self.end_in_time(tool)
        said = ""
        while "Profiling active" not in said:
            line = tool.stderr.readline()
            self.assertTrue(line, said)
            said += line
        return tool

    def attached(self, command, env):
        """The answers of a round while attached and of one behind it."""
        with subprocess.Popen(command, env={**os.environ, **env}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True) as process:
            self.end_in_time(process)
            lines = self.read_until(process, "ready")
            tool = self.attach(process)
            lines += self.ask(process)
            tool.send_signal(signal.SIGINT)
            _, said = tool.communicate(timeout=PATIENCE)
            self.assertNotIn("cannot record", said)
            self.assertEqual(tool.returncode, 0, said)
            if process.poll() is None:
                self.assertEqual(changed_code_bytes(process.pid), 0)
            lines += self.ask(process)
            lines += process.stdout.read().splitlines()
            process.wait(PATIENCE)
        return exit_code_of(process), lines

    @unittest.skipUnless(MAY_ATTACH and os.path.exists(MUSL), "attaching is not allowed here, or there is no musl")
    def test_attached_with_musl(self):
        command = [MUSL, "2"]
        self.assertEqual(self.attached(command, {}), answers(command, {}, rounds=2))

    @unittest.skipUnless(MAY_ATTACH, "attaching is not allowed here")
    def test_attached_and_detached(self):
        for allocator, name in CASES:
            with self.subTest(allocator=allocator, program=name):
                command, env = [program(name), "2"], with_allocator(allocator)
                self.assertEqual(self.attached(command, env), answers(command, env, rounds=2))


if __name__ == "__main__":
    unittest.main()
