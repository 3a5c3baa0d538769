"""What cmake --install puts somewhere works from there."""

import os
import shutil
import subprocess
import tempfile
import unittest

from profile_run import program, run

BUILD_DIRECTORY = os.environ["BUILD_DIRECTORY"]


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        first = os.path.join(cls.directory.name, "first")
        subprocess.run(["cmake", "--install", BUILD_DIRECTORY, "--component", "tool", "--prefix", first], check=True, capture_output=True)
        cls.prefix = os.path.join(cls.directory.name, "moved")
        shutil.move(first, cls.prefix)
        cls.tool = os.path.join(cls.prefix, "bin", "heap_profile")

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def test_the_library_is_the_installed_one(self):
        result = run(["/bin/sh", "-c", "echo $LD_PRELOAD"], tool=self.tool)
        library = os.path.join(self.prefix, "lib", "heapprofd", "libheapprofd_preload.so")
        self.assertEqual(result.stdout, os.path.realpath(library) + "\n", result.stderr)

    def test_a_program_is_profiled_from_there(self):
        result = run([program("exits"), "return"], ["-i", "1"], tool=self.tool)
        self.assertEqual(result.exit_code, 7, result.stderr)
        self.assertEqual(result.main.of("kept_block")["space"], 1000 * 1000)

    def test_a_place_that_the_loader_cannot_name_works_too(self):
        for name in ("a place", "a:place", "a $ORIGIN place"):
            prefix = os.path.join(self.directory.name, name)
            shutil.copytree(self.prefix, prefix)
            result = run([program("exits"), "return"], ["-i", "1"], tool=os.path.join(prefix, "bin", "heap_profile"))
            self.assertEqual(result.exit_code, 7, result.stderr)
            self.assertEqual(result.main.of("kept_block")["space"], 1000 * 1000, name)

    def test_documentation_and_licence_come_along(self):
        folder = os.path.join(self.prefix, "share", "doc", "heapprofd")
        for name in ("README.md", "LICENSE", "docs/architecture.md"):
            self.assertTrue(os.path.getsize(os.path.join(folder, name)) > 0, name)


if __name__ == "__main__":
    unittest.main()
