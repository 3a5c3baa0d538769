#!/usr/bin/env python3
"""Runs tests of what was built for another architecture in a whole machine of it, emulated: its kernel has what an emulator
of single programs lacks (ptrace, fanotify, signal frames of its own).

machine.py BUILD SYSROOT MACHINE TEST...: MACHINE is a tree of Debian with kernel, busybox and python3. A test is
unit/NAME, a unit test program, or e2e/FILE[.CLASS[.TEST]].
"""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import boot

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Of the build; of the programs for tests all.
FILES = ["src/cli/heap_profile", "src/cli/heapprofd", "src/client/libheapprofd_preload.so"]
EMULATOR = ["qemu-system-aarch64", "-M", "virt", "-cpu", "max,pauth-impdef=on", "-smp", "2", "-m", "2048", "-nographic", "-nic", "none",
            "-no-reboot", "-append", "console=ttyAMA0 quiet panic=-1"]
INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/usr/bin:/bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev; mkdir -p /dev/shm /tmp
mount -t tmpfs tmp /tmp; mount -t tmpfs shm /dev/shm; chmod 1777 /tmp
ip link set lo up
ulimit -c 0
export LANG=C.UTF-8 HOME=/root
export HEAP_PROFILE=/build/src/cli/heap_profile BUILD_DIRECTORY=/build TEST_PROGRAMS=/build/tests/programs
export COMPAT=/build/compat EXAMPLES=/build/examples SANITIZE= PYTHONPATH=/tests/proto PYTHONDONTWRITEBYTECODE=1
cd /tests/e2e
. /tests/commands
poweroff -f
"""


def output_of(*command):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout


class Tree:
    """The root file system of the machine."""

    def __init__(self, folder, sysroot):
        self.folder, self.sysroot, self.looked_at = folder, sysroot, set()

    def add(self, source, target):
        """A file, with the libraries that it needs."""
        target = self.folder / target
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
        with open(source, "rb") as file:
            if file.read(4) != b"\x7fELF":
                return
        subprocess.run(["aarch64-linux-gnu-strip", "--strip-debug", target], check=True)
        for name in re.findall(r"NEEDED.*\[(.*)\]", output_of("readelf", "-dW", source)):
            if name in self.looked_at:
                continue
            self.looked_at.add(name)
            library = self.sysroot / "usr/lib/aarch64-linux-gnu" / name
            library = library if library.exists() else self.sysroot / "lib/aarch64-linux-gnu" / name
            if library.exists() and not any((self.folder / place / name).exists() for place in
                                            ("usr/lib/aarch64-linux-gnu", "lib/aarch64-linux-gnu")):
                self.add(library, f"usr/lib/aarch64-linux-gnu/{name}")


def command_of(test):
    kind, name = test.split("/", 1)
    if kind == "unit":
        program, _, rest = name.partition(" ")
        return f"/build/unit/{program} --gtest_brief=1 {shlex.quote(rest) if rest else ''}"
    return boot.python_test(name)


def make_tree(folder, build, sysroot, machine, tests):
    shutil.copytree(machine, folder, symlinks=True, ignore=lambda path, names: [
        name for name in names if f"{path}/{name}"[len(str(machine)):] in
        ("/boot", "/dev", "/usr/lib/modules", "/lib/modules", "/usr/share/doc", "/usr/share/man", "/usr/share/locale", "/usr/lib/udev", "/var")])
    for name in ("build", "tests/e2e", "proc", "sys", "dev", "root", "tmp"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    tree = Tree(folder, sysroot)
    for test in tests:
        if test.startswith("unit/"):
            program = test[5:].split(" ")[0]
            tree.add(next(build.glob(f"src/*/{program}")), f"build/unit/{program}")
    if any(test.startswith("e2e/") for test in tests):
        add_what_is_recorded(tree, build)
    (folder / "init").write_text(INIT)
    (folder / "init").chmod(0o755)
    (folder / "tests/commands").write_text(boot.commands(tests, command_of))


def add_what_is_recorded(tree, build):
    """What end-to-end tests need: the profiler, programs for it to record, the tests themselves."""
    folder = tree.folder
    for name in FILES:
        tree.add(build / name, f"build/{name}")
    for path in (build / "tests/programs").iterdir():
        if path.is_file() and os.access(path, os.X_OK):
            tree.add(path, f"build/tests/programs/{path.name}")
    shutil.copytree(build / "src/client/platforms", folder / "build/src/client/platforms", symlinks=True)
    (folder / "build/compat").mkdir()
    for link in (build / "compat").iterdir():  # to where the build was made
        (folder / "build/compat" / link.name).symlink_to(pathlib.Path("/build") / pathlib.Path(os.readlink(link)).relative_to(build))
    shutil.copytree(ROOT / "tests/e2e", folder / "tests/e2e", dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "tests/proto").mkdir(parents=True)
    for schema in (ROOT / "proto").glob("*.proto"):
        subprocess.run(["protoc", f"--python_out={folder}/tests/proto", f"-I{ROOT}/proto", schema], check=True)


def main():
    build, sysroot, machine = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
    tests = sys.argv[4:]
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch) / "root"
        make_tree(folder, build, sysroot, machine, tests)
        archive = f"{scratch}/initrd"
        subprocess.run(f"find . | busybox cpio -o -H newc 2>/dev/null | gzip -1 >{archive}", shell=True, check=True, cwd=folder)
        shutil.rmtree(folder)
        kernel = next((machine / "boot").glob("vmlinuz-*"), None)
        if kernel is None:
            sys.exit(f"cannot start a machine: {machine}/boot has no kernel; remove {machine}, and it is fetched again")
        return boot.run(EMULATOR, kernel, archive, tests)


if __name__ == "__main__":
    sys.exit(main())
