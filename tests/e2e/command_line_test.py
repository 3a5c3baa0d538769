"""The command line: messages, exit codes, files."""

import os
import subprocess
import tempfile
import unittest

from profile_run import HEAP_PROFILE, program, run
from running_process import MAY_ATTACH, Running
from service_run import Place


def tool(*arguments, **options):
    return subprocess.run([HEAP_PROFILE, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL, **options)


class CommandLine(unittest.TestCase):
    def test_wrong_options_exit_with_2_and_a_hint(self):
        for arguments, hint in [
            (["--intervall", "5", "--", "true"], "did you mean --interval?"),
            (["-i", "0", "--", "true"], "from 1 to 1 TiB"),
            (["--shmem-size", "5000", "--", "true"], "power of two"),
            (["--interval"], "missing"),
            ([], "no program is named"),
            (["true"], "put -- in front"),
            (["--"], "no program is named"),
        ]:
            with self.subTest(arguments):
                result = tool(*arguments)
                self.assertEqual(result.returncode, 2)
                self.assertIn(hint, result.stderr)
                self.assertEqual(len(result.stderr.splitlines()), 1)

    def test_help_and_version_go_to_stdout(self):
        self.assertIn("usage: heap_profile", tool("--help").stdout)
        self.assertRegex(tool("--version").stdout, r"^heap_profile \d")

    def test_a_missing_program_exits_with_127(self):
        result = tool("--", "/nonexistent/program")
        self.assertEqual(result.returncode, 127)
        self.assertIn("cannot run /nonexistent/program", result.stderr)

    def test_a_file_that_is_no_program_exits_with_126(self):
        result = tool("--", "/etc/passwd")
        self.assertEqual(result.returncode, 126)

    def test_an_output_directory_that_is_in_use_is_refused(self):
        with tempfile.TemporaryDirectory() as directory:
            open(os.path.join(directory, "mine"), "w").close()
            result = tool("-o", directory, "--", "true")
            self.assertEqual(result.returncode, 2)
            self.assertIn("not empty", result.stderr)
            self.assertEqual(os.listdir(directory), ["mine"])

    def test_a_static_program_runs_and_the_cause_is_named(self):
        result = run([program("static_hello")])
        self.assertEqual((result.exit_code, result.stdout), (3, "static ok\n"))
        self.assertIn("statically linked", result.stderr)
        self.assertGreater(result.trace_size, 0)

    def test_a_program_that_allocates_nothing_is_told_so(self):
        for quiet in ([], ["-q"]):
            result = run(["/bin/true"], ["-i", "100000000", *quiet])
            self.assertEqual(result.exit_code, 0)
            self.assertRegex(result.stderr, "nothing recorded: the program called no allocation function that can be seen: it allocates nothing, or "
                             "its allocator is linked statically into it; link that one dynamically")
        self.assertEqual(run(["/bin/false"], ["-i", "100000000"]).exit_code, 1)

    @unittest.skipUnless(MAY_ATTACH, "attaching is not allowed here")
    def test_of_running_processes_nothing_is_4_too(self):
        with Running([program("patient"), "1"], stdin=subprocess.PIPE) as target, Place() as place:
            with tempfile.TemporaryDirectory() as directory:
                for number, (arguments, reason) in enumerate([
                        (["-p", str(target.pid)], "called no allocation function while it was recorded; record it for longer"),
                        (["-n", "no_such_program"], "no process was found .* is no_such_program; ps -e shows them"),
                        (["-q", "-n", "no_such_program"], "no process was found .* is no_such_program; ps -e shows them")]):
                    with self.subTest(arguments):
                        result = tool("-d", "200", "-o", f"{directory}/{number}", *arguments, env={**os.environ, **place.env})
                        self.assertEqual(result.returncode, 4, result.stderr)
                        self.assertRegex(result.stderr, "nothing recorded: .*" + reason)
                        self.assertTrue(os.path.exists(f"{directory}/{number}/report.html"))

    def test_output_of_the_program_is_not_touched(self):
        result = run(["/bin/echo", "a", "b"])
        self.assertEqual(result.stdout, "a b\n")

    def test_files_are_for_their_owner_only(self):
        with tempfile.TemporaryDirectory() as parent:
            directory = os.path.join(parent, "new")
            result = tool("-i", "1", "-o", directory, "--", program("known_stacks"))
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(os.stat(directory).st_mode & 0o777, 0o700)
            for name in os.listdir(directory):
                self.assertEqual(os.stat(os.path.join(directory, name)).st_mode & 0o777, 0o600, name)

    def test_an_impossible_output_directory_is_reported(self):
        with tempfile.TemporaryDirectory() as parent:
            result = tool("-o", os.path.join(parent, "no", "such", "parent"), "--", "true")
            self.assertEqual(result.returncode, 1)
            self.assertIn("cannot create output directory", result.stderr)


if __name__ == "__main__":
    unittest.main()
