#!/usr/bin/env python3
"""Runs idle_memory_test.py in a machine of its own, whose kernel tracks idle pages.

idle_machine.py BUILD KERNEL TEST...: BUILD was made for this machine, of which its Python and libraries are taken, too; a
test is CLASS[.TEST].
"""

import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile

import boot

FILES = ["src/cli/heap_profile", "src/cli/heapprofd", "src/client/libheapprofd_preload.so", "tests/programs/idle_memory"]
# Without KVM, which within virtual machines is often there and does not work. The emulator's tables at the end of memory leave half a
# word of the kernel's bitmap of idle pages, of which it tells nothing: the kernel is to use whole words, so that every page is told.
EMULATOR = ["qemu-system-x86_64", "-accel", "tcg", "-cpu", "max", "-m", "1536", "-nographic", "-nic", "none", "-no-reboot",
            "-append", "console=ttyS0 quiet panic=-1 mem=1535M"]
INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin:/usr/bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev; mkdir -p /dev/shm /run
mount -t tmpfs tmp /tmp; mount -t tmpfs shm /dev/shm; mount -t tmpfs run /run; chmod 1777 /tmp
export LANG=C.UTF-8 HOME=/root BUILD_DIRECTORY=/build PYTHONDONTWRITEBYTECODE=1
cd /tests
. /tests/commands
poweroff -f
"""


class Tree:
    """The root file system of the machine."""

    def __init__(self, folder):
        self.folder = folder

    def add(self, source, target):
        """A file, with the libraries that it needs."""
        target = self.folder / target.lstrip("/")
        if target.exists():
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
        with open(source, "rb") as file:
            if file.read(4) != b"\x7fELF":
                return
        libraries = subprocess.run(["ldd", source], capture_output=True, text=True, check=False).stdout
        for library in re.findall(r"(?<!\S)/\S+", libraries):
            self.add(library, library)

    def add_python(self):
        self.add("/usr/bin/python3", "usr/bin/python3")
        library = sysconfig.get_path("stdlib")
        shutil.copytree(library, self.folder / library.lstrip("/"), ignore=shutil.ignore_patterns("test", "__pycache__", "dist-packages", "idlelib", "config-*"))
        for module in pathlib.Path(library, "lib-dynload").glob("*.so"):
            for needed in re.findall(r"(?<!\S)/\S+", subprocess.run(["ldd", module], capture_output=True, text=True, check=False).stdout):
                self.add(needed, needed)


def make_tree(folder, build, tests):
    for name in ("bin", "dev", "proc", "sys", "tmp", "root", "etc", "tests"):
        (folder / name).mkdir(parents=True)
    tree = Tree(folder)
    tree.add("/usr/bin/busybox", "bin/busybox")
    tree.add_python()
    for name in FILES:
        tree.add(build / name, f"build/{name}")
    for name in FILES[:2]:
        subprocess.run(["strip", "--strip-debug", folder / "build" / name], check=True)
    shutil.copytree(build / "src/client/platforms", folder / "build/src/client/platforms", symlinks=True)
    (folder / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/tmp:/bin/sh\n")
    (folder / "etc/group").write_text("root:x:0:\nnogroup:x:65534:\n")
    shutil.copy(pathlib.Path(__file__).with_name("idle_memory_test.py"), folder / "tests")
    (folder / "tests/commands").write_text(boot.commands(tests, lambda test: boot.python_test("idle_memory_test." + test)))
    (folder / "init").write_text(INIT)
    (folder / "init").chmod(0o755)


def main():
    build, kernel = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    tests = sys.argv[3:]
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch) / "root"
        make_tree(folder, build, tests)
        archive = f"{scratch}/initrd"
        subprocess.run(f"find . | busybox cpio -o -H newc 2>/dev/null | gzip -1 >{archive}", shell=True, check=True, cwd=folder)
        shutil.rmtree(folder)
        return boot.run(EMULATOR, kernel, archive, tests)


if __name__ == "__main__":
    sys.exit(main())
