#!/usr/bin/env python3
"""Fails when a source file includes a module that its own module may not use, or has outgrown its limit."""

import pathlib
import re
import sys

OUTSIDE = {"base", "sandbox", "rt", "walk", "wire", "profile", "unwind", "symbolize", "jit", "trace", "export", "convert",
           "import", "query", "report"}
ALLOWED = {  # module: modules it may include; itself always
    "base": set(),
    "sandbox": {"base"},
    "rt": set(),
    "walk": {"rt"},
    "wire": {"rt", "walk"},
    "client": {"rt", "wire", "walk"},
    "profile": {"base"},
    "unwind": {"base", "walk", "profile"},
    "symbolize": {"base", "sandbox", "profile"},
    "jit": {"base", "profile"},
    "trace": {"base", "profile"},
    "export": {"base", "profile"},
    "object_graph": {"base"},
    "hprof": {"base", "trace", "object_graph"},
    "convert": {"base", "profile", "symbolize", "trace", "export", "query"},
    "import": {"base", "profile", "trace", "export"},  # export: tests only
    "query": {"base", "profile", "trace", "symbolize", "object_graph"},
    "report": {"base", "profile", "trace", "export", "query"},
    "attach": {"base", "sandbox", "wire", "unwind"},
    "engine": (OUTSIDE | {"attach"}) - {"convert", "import", "query", "report"},
    "sources": {"base", "engine", "trace"},
    "config": {"base", "wire", "export", "engine", "sources"},
    "record": {"base", "profile", "engine", "trace", "sources", "config"},
    "service": {"base", "sandbox", "wire", "profile", "attach", "engine", "trace", "config", "record"},
    "cli": (OUTSIDE | {"attach", "engine", "sources", "config", "record", "service", "hprof", "object_graph"}) - {"rt"},
}
MAX_LINES = 800


def problems_of(root):
    """Yields one line of text per violation below `root`."""
    for path in sorted(root.rglob("*")):
        if path.suffix not in {".h", ".cc"} or "testdata" in path.parts:
            continue
        module = path.relative_to(root).parts[0]
        if module not in ALLOWED:
            yield f"{path}: the folder {module} is not in the list of layers"
            continue
        lines = path.read_text().splitlines()
        if len(lines) > MAX_LINES:
            yield f"{path}: {len(lines)} lines, more than {MAX_LINES}: split it by reason to change"
        for number, line in enumerate(lines, 1):
            match = re.match(r'#include "([a-z_]+)/', line)
            if match and match[1] != module and match[1] not in ALLOWED[module]:
                yield f"{path}:{number}: {module} may not include {match[1]}"


def main():
    problems = list(problems_of(pathlib.Path(sys.argv[1])))
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
