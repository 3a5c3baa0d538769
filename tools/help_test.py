"""--help of a script tells what it does, and does nothing."""

import pathlib
import subprocess
import unittest

TOOLS = pathlib.Path(__file__).resolve().parent


class Help(unittest.TestCase):
    def test_help_is_the_comment_at_the_head(self):
        scripts = [path for path in sorted(TOOLS.iterdir()) if path.is_file() and not path.suffix and b'. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"' in path.read_bytes()]
        self.assertGreater(len(scripts), 5)
        for script in scripts:
            for option in ("-h", "--help"):
                with self.subTest(script.name, option=option):
                    # Whatever else it did would take longer, and begin with a look for Debian packages.
                    done = subprocess.run([script, option], capture_output=True, text=True, timeout=60, cwd="/", env={"PATH": "/usr/bin:/bin"})
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
                    self.assertIn(f"tools/{script.name}", done.stdout)
                    head = [line[2:] for line in script.read_text().split("\nset -eu\n")[0].splitlines()[1:]]
                    self.assertEqual(done.stdout.splitlines(), head)


if __name__ == "__main__":
    unittest.main()
