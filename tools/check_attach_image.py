#!/usr/bin/env python3
"""Checks that the attached client's flat image can lie anywhere and needs nothing."""

import re
import subprocess
import sys

RELATIVE = {"R_X86_64_PC32", "R_X86_64_PLT32", "R_X86_64_NONE", "R_X86_64_GOTPCRELX", "R_X86_64_REX_GOTPCRELX",
            # By pages, of which the image has whole ones; within functions.
            "R_AARCH64_ADR_PREL_PG_HI21", "R_AARCH64_ADD_ABS_LO12_NC", "R_AARCH64_LDST8_ABS_LO12_NC",
            "R_AARCH64_LDST16_ABS_LO12_NC", "R_AARCH64_LDST32_ABS_LO12_NC", "R_AARCH64_LDST64_ABS_LO12_NC",
            "R_AARCH64_CALL26", "R_AARCH64_JUMP26", "R_AARCH64_PREL32", "R_AARCH64_CONDBR19", "R_AARCH64_TSTBR14"}
# Where a thread goes back by itself (rt/aarch64/go_back.h): they are only read.
SAVED = {f"q{number}" for number in range(32)}
# Only the setup may call the kernel: a hook would do so under a seccomp filter of the program's.
SYSTEM_CALL = re.compile(r"\t(?:syscall|sysenter|int|svc)\b")
SETUP = {"HpdSetup", "HpdSetupEntry", "HpdSetupWait"}
MAX_IMAGE = 128 * 1024  # bytes with contents


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def problems_of(path, objdump):
    """Yields one line of text per broken promise."""
    undefined = output_of("nm", "-u", path).split()
    if undefined:
        yield f"needs {' '.join(undefined)}"
    section = ""
    for line in output_of("readelf", "-rW", path).splitlines():
        header = re.match(r"Relocation section '\.rela\.(.*)'", line)
        section = header[1] if header else section
        kind = re.search(r" (R_(?:X86_64|AARCH64)_\w+)", line)
        if kind and not section.startswith("debug") and kind[1] not in RELATIVE:
            yield f"has a relocation {kind[1]} in .{section}: it depends on its address"
    sections = {name: int(size, 16) for name, size in re.findall(
        r"\] (\.\S+) +\w+ +[0-9a-f]+ [0-9a-f]+ ([0-9a-f]+)", output_of("readelf", "-SW", path))}
    for name in (".got", ".got.plt", ".tdata", ".tbss", ".init_array", ".dynamic"):
        if sections.get(name):
            yield f"has {name}"
    if sections[".text"] + sections.get(".data", 0) > MAX_IMAGE:
        yield f"has more than {MAX_IMAGE} bytes"
    code = output_of(objdump, "-d", "--no-show-raw-insn", "-j", ".text", path)
    registers = set(re.findall(r"%[xyz]mm\d+|\b[vqds]\d+\b(?!:| <)", code)) - SAVED
    function = ""
    for line in code.splitlines():
        label = re.match(r"[0-9a-f]+ <(.*)>:$", line)
        function = label[1] if label else function
        if SYSTEM_CALL.search(line) and function not in SETUP:
            yield f"makes a system call in {function}"
    if registers:
        yield f"uses {' '.join(sorted(registers))}, which the setup must leave alone"


def main():
    problems = list(problems_of(*sys.argv[1:3]))
    for problem in problems:
        print(f"{sys.argv[1]}: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
