#!/usr/bin/env python3
"""Checks that the attached client's flat image can lie anywhere and needs nothing."""

import re
import subprocess
import sys

RELATIVE = {"R_X86_64_PC32", "R_X86_64_PLT32", "R_X86_64_NONE", "R_X86_64_GOTPCRELX", "R_X86_64_REX_GOTPCRELX"}
MAX_IMAGE = 128 * 1024  # bytes with contents


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def problems_of(path):
    """Yields one line of text per broken promise."""
    undefined = output_of("nm", "-u", path).split()
    if undefined:
        yield f"needs {' '.join(undefined)}"
    section = ""
    for line in output_of("readelf", "-rW", path).splitlines():
        header = re.match(r"Relocation section '\.rela\.(.*)'", line)
        section = header[1] if header else section
        kind = re.search(r" (R_X86_64_\w+)", line)
        if kind and not section.startswith("debug") and kind[1] not in RELATIVE:
            yield f"has a relocation {kind[1]} in .{section}: it depends on its address"
    sections = {name: int(size, 16) for name, size in re.findall(
        r"\] (\.\S+) +\w+ +[0-9a-f]+ [0-9a-f]+ ([0-9a-f]+)", output_of("readelf", "-SW", path))}
    for name in (".got", ".got.plt", ".tdata", ".tbss", ".init_array", ".dynamic"):
        if sections.get(name):
            yield f"has {name}"
    if sections[".text"] + sections.get(".data", 0) > MAX_IMAGE:
        yield f"has more than {MAX_IMAGE} bytes"
    registers = sorted(set(re.findall(r"%[xyz]mm\d+", output_of("objdump", "-d", "-j", ".text", path))))
    if registers:
        yield f"uses {' '.join(registers)}, which the setup must leave alone"


def main():
    problems = list(problems_of(sys.argv[1]))
    for problem in problems:
        print(f"{sys.argv[1]}: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
