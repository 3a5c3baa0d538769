"""The layer check finds what it is there for."""

import pathlib
import tempfile
import unittest

import check_layers


class CheckLayers(unittest.TestCase):
    def problems(self, path, text):
        with tempfile.TemporaryDirectory() as directory:
            file = pathlib.Path(directory) / path
            file.parent.mkdir(parents=True)
            file.write_text(text)
            return list(check_layers.problems_of(pathlib.Path(directory)))

    def test_an_arrow_in_the_wrong_direction_is_found(self):
        self.assertEqual(len(self.problems("client/a.cc", '#include "base/status.h"\n')), 1)

    def test_an_allowed_arrow_passes(self):
        self.assertEqual(self.problems("client/a.cc", '#include "wire/ring.h"\n'), [])

    def test_an_unknown_folder_is_found(self):
        self.assertEqual(len(self.problems("misc/a.cc", "")), 1)

    def test_a_file_that_is_too_long_is_found(self):
        self.assertEqual(len(self.problems("base/a.cc", "\n" * 801)), 1)


if __name__ == "__main__":
    unittest.main()
