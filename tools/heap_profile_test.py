"""The wrapper builds when a source is newer and not otherwise, for whoever may; with a stand-in for cmake."""

import os
import shutil
import stat
import subprocess
import tempfile
import time
import unittest

TOOLS = os.path.dirname(os.path.abspath(__file__))
NOBODY = 65534
# Makes the program that the build makes, and notes each build.
CMAKE = """#!/bin/sh
[ "$1 $2" = "--build --preset" ] || exit 0
mkdir -p "build/$3/src/cli"
printf '#!/bin/sh\\necho "ran $*"\\n' > "build/$3/src/cli/heap_profile"
chmod 755 "build/$3/src/cli/heap_profile"
echo "$*" >> "$BUILDS"
"""


class Wrapper(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="hpd_wrapper_")
        self.addCleanup(shutil.rmtree, self.root)
        os.chmod(self.root, 0o755)
        for folder in ("bin", "tools", "cmake", "docs", "include", "packaging", "proto", "src/cli"):
            os.makedirs(os.path.join(self.root, folder))
        for name in ("CMakeLists.txt", "CMakePresets.json", "README.md", "LICENSE", "tools/packages.txt", "src/cli/main.cc",
                     "src/cli/other.cc"):
            open(os.path.join(self.root, name), "w").close()
        for name in ("heap_profile", "lib.sh"):
            shutil.copy(os.path.join(TOOLS, name), os.path.join(self.root, "tools"))
        cmake = os.path.join(self.root, "bin", "cmake")
        with open(cmake, "w") as file:
            file.write(CMAKE)
        os.chmod(cmake, stat.S_IRWXU | stat.S_IROTH | stat.S_IXOTH)
        self.log = os.path.join(self.root, "builds")
        # Everything is older than the first build.
        for folder, folders, files in os.walk(self.root):
            for name in (*folders, *files, "."):
                os.utime(os.path.join(folder, name), (time.time() - 100,) * 2)

    def run_tool(self, *arguments, **kwargs):
        return subprocess.run([os.path.join(self.root, "tools", "heap_profile"), *arguments], capture_output=True, text=True,
                              env={**os.environ, "PATH": os.path.join(self.root, "bin") + ":" + os.environ["PATH"],
                                   "BUILDS": self.log}, **kwargs)

    def builds(self):
        if not os.path.exists(self.log):
            return 0
        with open(self.log) as file:
            return len(file.readlines())

    def test_it_builds_once_and_again_when_something_has_changed(self):
        self.assertEqual(self.run_tool("a", "b c").stdout, "ran a b c\n")
        self.assertEqual(self.builds(), 1)
        with open(self.log) as log:  # all that cmake --install needs
            self.assertIn("--target installed", log.read())
        self.assertEqual(self.run_tool("x").stdout, "ran x\n")
        self.assertEqual(self.builds(), 1)
        later = time.time() + 10
        os.utime(os.path.join(self.root, "src", "cli", "main.cc"), (later, later))
        self.run_tool()
        self.assertEqual(self.builds(), 2)

    def test_a_file_that_is_gone_is_a_change(self):
        self.run_tool()
        os.unlink(os.path.join(self.root, "src", "cli", "other.cc"))
        os.utime(os.path.join(self.root, "src", "cli"), (time.time() + 10,) * 2)
        self.run_tool()
        self.assertEqual(self.builds(), 2)

    def test_a_failed_build_is_tried_again(self):
        self.run_tool()
        os.utime(os.path.join(self.root, "proto"), (time.time() + 10,) * 2)
        os.rename(os.path.join(self.root, "bin", "cmake"), os.path.join(self.root, "bin", "kept"))
        with open(os.path.join(self.root, "bin", "cmake"), "w") as file:
            file.write("#!/bin/sh\necho broken; exit 1\n")
        os.chmod(os.path.join(self.root, "bin", "cmake"), 0o755)
        failed = self.run_tool()
        self.assertEqual(failed.returncode, 1)
        self.assertIn("broken\ncannot build the release preset", failed.stderr)
        os.replace(os.path.join(self.root, "bin", "kept"), os.path.join(self.root, "bin", "cmake"))
        self.assertEqual(self.run_tool().returncode, 0)
        self.assertEqual(self.builds(), 2)

    @unittest.skipUnless(os.geteuid() == 0, "only root can be somebody else")
    def test_somebody_else_runs_what_is_built(self):
        nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        refused = self.run_tool(**nobody)
        self.assertEqual(refused.returncode, 1)
        self.assertRegex(refused.stderr, "^cannot build heap_profile: .* belongs to somebody else; .*\n$")
        self.run_tool()
        self.assertEqual(self.run_tool("x", **nobody).stdout, "ran x\n")
        os.utime(os.path.join(self.root, "proto"), (time.time() + 10,) * 2)
        stale = self.run_tool("x", **nobody)
        self.assertEqual(stale.stdout, "ran x\n")
        self.assertIn("built from older sources", stale.stderr)
        self.assertEqual(self.builds(), 1)


if __name__ == "__main__":
    unittest.main()
