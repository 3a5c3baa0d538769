#!/usr/bin/env python3
"""Fails when a file includes a folder that its own may not use, or when a file or a folder has outgrown its limit.

What a folder may use stands in its CMakeLists.txt: `hpd_module(NAME ... DEPS A B ... TEST_LIBS C ...)`. The tests of a
folder may use the folders of its TEST_LIBS, too. Folders stand in src/CMakeLists.txt bottom up: DEPS are further up.
"""

import pathlib
import re
import sys

MAX_LINES = 800
MAX_FILES = 40  # product files in one folder; its subfolders count for themselves
KEYWORDS = {"SRCS", "DEPS", "LIBS", "TESTS", "TEST_LIBS", "FUZZ"}


def words_of(call):
    """{keyword: words} of a call of hpd_module."""
    words, found = [], {}
    for word in call.split():
        if word in KEYWORDS:
            words = found.setdefault(word, [])
        else:
            words.append(word)
    return found


class Modules:
    """Which folder may use which, as the CMake files tell."""

    def __init__(self, root):
        listed = re.search(r"foreach\(folder ([^)]*)\)", (root / "CMakeLists.txt").read_text())
        self.order = listed[1].split()
        self.uses, self.tests_use, libraries, test_libraries = {}, {}, {}, {}
        for folder in self.order:
            file = root / folder / "CMakeLists.txt"
            text = re.sub(r"#.*", "", file.read_text()) if file.exists() else ""
            for call in re.findall(r"hpd_module\(\w+([^)]*)\)", text):
                words = words_of(call)
                self.uses[folder] = {word for word in words.get("DEPS", []) if word in self.order}
                test_libraries[folder] = words.get("TEST_LIBS", [])
            for library in re.findall(r"add_library\((\w+)", text) + ["hpd_" + folder]:
                libraries[library] = folder
        for folder, names in test_libraries.items():
            self.tests_use[folder] = {libraries[name] for name in names if name in libraries}

    def problems(self):
        for folder, uses in self.uses.items():
            for other in sorted(uses):
                if self.order.index(other) > self.order.index(folder):
                    yield f"{folder} uses {other}, which stands below it in src/CMakeLists.txt"

    def may_use(self, folder, path):
        is_test = re.search(r"(_test|_fuzz)\.cc$|/test_\w+\.(h|cc)$", str(path)) is not None
        return self.uses[folder] | {folder} | (self.tests_use[folder] if is_test else set())


def crowded(root):
    """Folders with too many files."""
    count = {}
    for path in root.rglob("*"):
        if path.suffix in {".h", ".cc", ".S"} and "testdata" not in path.parts and \
                not re.search(r"(_test|_fuzz)\.cc$", path.name):
            count[path.parent] = count.get(path.parent, 0) + 1
    for folder, files in sorted(count.items()):
        if files > MAX_FILES:
            yield f"{folder}: {files} product files, more than {MAX_FILES}: give some a room of their own"


def problems_of(root):
    """Yields one line of text per violation below `root`."""
    modules = Modules(root)
    yield from modules.problems()
    yield from crowded(root)
    included = {folder: set() for folder in modules.uses}
    for path in sorted(root.rglob("*")):
        if path.suffix not in {".h", ".cc"} or "testdata" in path.parts:
            continue
        folder = path.relative_to(root).parts[0]
        if folder not in modules.uses:
            yield f"{path}: the folder {folder} is not in the list of layers"
            continue
        lines = path.read_text().splitlines()
        if len(lines) > MAX_LINES:
            yield f"{path}: {len(lines)} lines, more than {MAX_LINES}: split it by reason to change"
        for number, line in enumerate(lines, 1):
            match = re.match(r'#include "([a-z_]+)/', line)
            if not match or match[1] not in modules.order:
                continue
            included[folder].add(match[1])
            if match[1] not in modules.may_use(folder, path):
                yield f"{path}:{number}: {folder} may not include {match[1]}"
    for folder, uses in modules.uses.items():
        for other in sorted(uses - included[folder]):
            yield f"{root / folder}/CMakeLists.txt: {folder} uses nothing of {other}"


def main():
    problems = list(problems_of(pathlib.Path(sys.argv[1])))
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
