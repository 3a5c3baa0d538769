"""tidy looks at a source again exactly when something has changed that its findings depend on."""

import importlib.machinery
import importlib.util
import pathlib
import tempfile
import unittest

PATH = str(pathlib.Path(__file__).resolve().parent / "tidy")


def load():
    loader = importlib.machinery.SourceFileLoader("tidy", PATH)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("tidy", loader))
    loader.exec_module(module)
    return module


class Tidy(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.tidy = load()
        self.tidy.ROOT = pathlib.Path(self.directory.name)
        self.tidy.SOURCES = self.tidy.ROOT / "src"
        self.write(".clang-tidy", "Checks: bugprone-*")
        self.write("src/a/one.cc", '#include "a/one.h"\n#include <vector>\n')
        self.write("src/a/one.h", '#include "b/deep.h"\n')
        self.write("src/b/deep.h", '#include "a/one.h"\n')  # a circle must end
        self.write("src/b/other.h", "")
        self.before = self.key()

    def write(self, name, text):
        path = self.tidy.ROOT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def key(self, command="c++ -c"):
        source = self.tidy.SOURCES / "a/one.cc"
        return self.tidy.keys_of({source: command})[source]

    def test_what_is_as_it_was_has_its_old_key(self):
        self.write("src/b/other.h", "int x;\n")
        self.assertEqual(self.key(), self.before)

    def test_a_change_of_a_header_far_away_counts(self):
        self.write("src/b/deep.h", '#include "a/one.h"\nint x;\n')
        self.assertNotEqual(self.key(), self.before)

    def test_a_change_of_the_flags_or_the_checks_counts(self):
        self.assertNotEqual(self.key("c++ -DX -c"), self.before)
        self.write(".clang-tidy", "Checks: performance-*")
        self.assertNotEqual(self.key(), self.before)


if __name__ == "__main__":
    unittest.main()
