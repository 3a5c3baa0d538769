"""What cmake --install puts somewhere works from there."""

import os
import shutil
import subprocess
import tempfile
import unittest

from profile_run import RUNS_32_BIT, program, run

BUILD_DIRECTORY = os.environ["BUILD_DIRECTORY"]


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        first = os.path.join(cls.directory.name, "first")
        subprocess.run(["cmake", "--install", BUILD_DIRECTORY, "--prefix", first], check=True, capture_output=True)
        cls.prefix = os.path.join(cls.directory.name, "moved")
        shutil.move(first, cls.prefix)
        cls.tool = os.path.join(cls.prefix, "bin", "heap_profile")

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def assert_leaves_32_bit_programs_alone(self, tool):
        result = run(["/bin/sh", "-c", f'{program("hello32")} 2>&1'], tool=tool)
        self.assertEqual((result.exit_code, result.stdout), (5, "ok\n"), result.stderr)

    def test_the_library_is_the_installed_one(self):
        result = run(["/bin/sh", "-c", "echo $LD_PRELOAD"], tool=self.tool)
        folder = os.path.realpath(os.path.join(self.prefix, "lib", "heapprofd"))
        self.assertEqual(result.stdout, folder + "/platforms/$PLATFORM/libheapprofd_preload.so\n", result.stderr)

    def test_a_program_is_profiled_from_there(self):
        result = run([program("exits"), "return"], ["-i", "1"], tool=self.tool)
        self.assertEqual(result.exit_code, 7, result.stderr)
        self.assertEqual(result.main.of("kept_block")["space"], 1000 * 1000)

    @unittest.skipUnless(RUNS_32_BIT, "nothing here runs 32-bit programs")
    def test_a_32_bit_program_is_left_alone_from_there(self):
        self.assert_leaves_32_bit_programs_alone(self.tool)

    def test_a_place_that_the_loader_cannot_name_works_too(self):
        for name in ("a place", "a:place", "a $ORIGIN place"):
            prefix = os.path.join(self.directory.name, name)
            shutil.copytree(self.prefix, prefix)
            tool = os.path.join(prefix, "bin", "heap_profile")
            result = run([program("exits"), "return"], ["-i", "1"], tool=tool)
            self.assertEqual(result.exit_code, 7, result.stderr)
            self.assertEqual(result.main.of("kept_block")["space"], 1000 * 1000, name)
            if RUNS_32_BIT:
                self.assert_leaves_32_bit_programs_alone(tool)

    def test_the_link_to_a_place_with_blanks_stays_for_a_program_that_runs_on(self):
        prefix = os.path.join(self.directory.name, "the place")
        shutil.copytree(self.prefix, prefix)
        with tempfile.TemporaryDirectory() as directory:
            errors, go, said = (os.path.join(directory, name) for name in ("errors", "go", "said"))
            os.mkfifo(go)
            os.mkfifo(said)
            later = f"exec >/dev/null 2>{errors}; read line <{go}; /bin/echo started >{said}"
            result = run(["/bin/sh", "-c", later], ["-d", "200", "--no-report"],
                         env={"XDG_RUNTIME_DIR": directory},  # the link remains
                         tool=os.path.join(prefix, "bin", "heap_profile"))
            self.assertIn("runs on unprofiled", result.stderr)
            subprocess.run(["/bin/sh", "-c", f"echo on >{go}"], timeout=60, check=True)
            started = subprocess.run(["cat", said], timeout=60, check=True, capture_output=True, text=True).stdout
            with open(errors) as file:
                self.assertEqual((started, file.read()), ("started\n", ""))

    def test_perfettos_names_are_there(self):
        for name in ("bin/traceconv", "lib/heapprofd/compat/traceconv"):
            self.assertIn("usage: traceconv", self.output_of(name, "--help"))
        for name in ("bin/trace_processor_shell", "lib/heapprofd/compat/trace_processor_shell"):
            self.assertIn("usage: trace_processor_shell", self.output_of(name, "--help"))
        for name in ("heapprofd", "traced"):
            self.assertIn("usage: heapprofd", self.output_of("lib/heapprofd/compat/" + name, "--help"))
        self.assertIn("-o, --out FILE", self.output_of("lib/heapprofd/compat/perfetto", "--help"))
        result = run([program("exits"), "return"], ["-i", "1"],
                     tool=os.path.join(self.prefix, "lib", "heapprofd", "compat", "heap_profile"))
        self.assertEqual(result.main.of("kept_block")["space"], 1000 * 1000)
        library = os.path.join(self.prefix, "lib", "heapprofd", "compat", "libheapprofd_glibc_preload.so")
        self.assertEqual(os.path.basename(os.path.realpath(library)), "libheapprofd_preload.so")

    def output_of(self, name, *arguments):
        return subprocess.run([os.path.join(self.prefix, name), *arguments], capture_output=True, text=True,
                              check=True).stdout

    def test_documentation_and_licence_come_along(self):
        folder = os.path.join(self.prefix, "share", "doc", "heapprofd")
        for name in ("README.md", "LICENSE", "docs/architecture.md"):
            self.assertTrue(os.path.getsize(os.path.join(folder, name)) > 0, name)


if __name__ == "__main__":
    unittest.main()
