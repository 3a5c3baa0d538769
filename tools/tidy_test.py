"""tidy looks at a source again exactly when something has changed that its findings depend on, and at each in every batch."""

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

    def test_a_batch_has_one_module_the_same_flags_and_an_end(self):
        sources = [self.tidy.SOURCES / f"a/{number}.cc" for number in range(15)]
        others = [self.tidy.SOURCES / "a/other.cc", self.tidy.SOURCES / "b/one.cc"]
        commands = {source: f"c++ -o {source.stem}.o -c {source}" for source in [*sources, *others]}
        commands[others[0]] += " -DX"
        self.assertEqual(self.tidy.batches_of(commands, commands), [sources[:12], sources[12:], others[:1], others[1:]])

    def test_findings_of_a_batch_are_those_of_its_sources_alone(self):
        batch = [self.tidy.SOURCES / "a/good.cc", self.tidy.SOURCES / "a/bad.cc"]
        found = {pathlib.Path("batch_0.cc"): "clash and more", batch[1]: "more"}
        self.tidy.findings_of = lambda source: found.get(source, "")
        self.assertEqual(self.tidy.check(pathlib.Path("batch_0.cc"), batch), ({batch[0]: "", batch[1]: "more"}, True))
        self.assertEqual(self.tidy.check(pathlib.Path("batch_1.cc"), batch), ({batch[0]: "", batch[1]: ""}, False))

    def test_a_finding_in_any_source_of_a_batch_is_seen(self):
        self.tidy.PASSED = self.tidy.ROOT
        self.write(".clang-tidy", "Checks: '-*,google-explicit-constructor'\nHeaderFilterRegex: '^.*/src/.*'\nWarningsAsErrors: '*'\n")
        batch = [self.tidy.SOURCES / "a/good.cc", self.tidy.SOURCES / "a/bad.cc"]
        self.write("src/a/good.cc", "struct Good {\n  explicit Good(int);\n};\n")
        self.write("src/a/bad.cc", "struct Bad {\n  Bad(int);\n};\n")
        commands = {source: f"c++ -c {source}" for source in batch}
        self.tidy.BUILD = self.tidy.ROOT
        [path] = self.tidy.write_batches([batch], commands)
        self.tidy.write_commands(commands)
        found, apart = self.tidy.check(path, batch)
        self.assertTrue(apart)
        self.assertEqual(found[batch[0]], "")
        self.assertIn("google-explicit-constructor", found[batch[1]])
        self.assertNotIn("bugprone-suspicious-include", self.tidy.findings_of(path))


if __name__ == "__main__":
    unittest.main()
