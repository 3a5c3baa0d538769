"""The layer check finds what it is there for."""

import pathlib
import tempfile
import unittest

import check_layers

FOLDERS = {
    "CMakeLists.txt": "foreach(folder base wire client)\nendforeach()\n",
    "base/CMakeLists.txt": "hpd_module(base SRCS a.cc)\n",
    "wire/CMakeLists.txt": "hpd_module(wire SRCS a.cc)\n",
    "client/CMakeLists.txt": "# DEPS base\nhpd_module(client SRCS a.cc\n    DEPS wire LIBS z TESTS a_test.cc TEST_LIBS hpd_base)\n",
    "client/use.cc": '#include "wire/ring.h"\n',
}


class CheckLayers(unittest.TestCase):
    def problems(self, files):
        with tempfile.TemporaryDirectory() as directory:
            for path, text in (FOLDERS | files).items():
                file = pathlib.Path(directory) / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            return list(check_layers.problems_of(pathlib.Path(directory)))

    def test_allowed_arrows_pass(self):
        self.assertEqual(self.problems({"client/sub/b.cc": '#include "client/a.h"\n#include "wire/ring.h"\n'}), [])

    def test_an_arrow_that_is_not_told_is_found(self):
        self.assertEqual(len(self.problems({"client/b.cc": '#include "base/status.h"\n'})), 1)
        self.assertEqual(len(self.problems({"base/b.cc": '#include "client/a.h"\n'})), 1)

    def test_a_test_may_use_what_it_is_linked_to(self):
        self.assertEqual(self.problems({"client/b_test.cc": '#include "base/status.h"\n'}), [])

    def test_an_arrow_that_nobody_needs_is_found(self):
        self.assertEqual(len(self.problems({"client/use.cc": ""})), 1)

    def test_an_arrow_downwards_is_found(self):
        self.assertEqual(len(self.problems({"base/CMakeLists.txt": "hpd_module(base DEPS wire)\n",
                                            "base/b.cc": '#include "wire/ring.h"\n'})), 1)

    def test_an_unknown_folder_is_found(self):
        self.assertEqual(len(self.problems({"misc/a.cc": ""})), 1)

    def test_a_file_that_is_too_long_is_found(self):
        self.assertEqual(len(self.problems({"base/a.cc": "\n" * 801})), 1)

    def test_a_crowded_folder_is_found(self):
        files = {f"base/f{number}.h": "" for number in range(41)}
        self.assertEqual(len(self.problems(files)), 1)
        tests = {f"base/f{number}_test.cc": "" for number in range(41)}
        self.assertEqual(self.problems(tests), [])


if __name__ == "__main__":
    unittest.main()
