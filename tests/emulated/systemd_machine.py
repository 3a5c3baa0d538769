#!/usr/bin/env python3
"""Runs units_test.py in a machine of its own, with systemd as its first process and our packages to install.

systemd_machine.py PACKAGES KERNEL TREE TEST...: folders of the packages and of Debians, one with a kernel, the other with
what runs; a test is CLASS[.TEST].
"""

import glob
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import boot
from newer import make_newer

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Without KVM, which within virtual machines is often there and does not work.
EMULATOR = ["qemu-system-x86_64", "-accel", "tcg", "-cpu", "max", "-smp", "2", "-m", "3072", "-nographic", "-nic", "none",
            "-no-reboot", "-append",
            "console=ttyS0 quiet panic=-1 systemd.show_status=0 systemd.mask=serial-getty@ttyS0.service systemd.getty_auto=0"]
UNIT = """[Unit]
Description=Tests
After=multi-user.target systemd-user-sessions.service dbus.service
[Service]
Type=oneshot
TimeoutStartSec=infinity
ExecStart=/bin/sh /tests/commands
ExecStopPost=/usr/bin/systemctl poweroff --force --force
Environment=PYTHONDONTWRITEBYTECODE=1
WorkingDirectory=/tests
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS0
"""
# What the machine has no use for. Its kernel needs none of its modules.
LEFT_OUT = ["./boot", "./libraries", "./usr/lib/modules", "./usr/share/doc", "./usr/share/man", "./usr/share/locale", "./var/cache/apt",
            "./var/lib/apt/lists", "./usr/lib/python3/dist-packages", "./dev", "./proc", "./sys"]


def pack(folder, archive, left_out=()):
    """In the format that the kernel unpacks."""
    subprocess.run(["bsdtar", "-c", "--format", "newc", *(f"--exclude={path}/*" for path in left_out), "-f", archive, "-C", folder, "."],
                   check=True)


def change_service(tree):
    """So that the test of an upgrade sees whether systemd has read it."""
    path = pathlib.Path(tree, "lib/systemd/system/heapprofd.service")
    if path.exists():
        path.write_text(path.read_text().replace("[Service]\n", "[Service]\nEnvironment=VERSION=next\n"))


def add_tests(folder, packages, tests):
    for name in ("packages/next", "tests", "etc/systemd/system/multi-user.target.wants"):
        (folder / name).mkdir(parents=True)
    for deb in glob.glob(f"{packages}/*.deb"):
        name = os.path.basename(deb)
        if name.startswith(("heapprofd_", "heapprofd-daemon_")):
            shutil.copy(deb, folder / "packages")
            make_newer(deb, folder / "packages/next" / name, change_service)
    (folder / "tests/units_test.py").write_bytes((ROOT / "tests/emulated/units_test.py").read_bytes())
    (folder / "tests/security.md").write_bytes((ROOT / "docs/design/security.md").read_bytes())
    (folder / "tests/commands").write_text(boot.commands(tests, lambda test: boot.python_test("units_test." + test)))
    (folder / "etc/systemd/system/tests.service").write_text(UNIT)
    (folder / "etc/systemd/system/multi-user.target.wants/tests.service").symlink_to("../tests.service")
    (folder / "init").symlink_to("/lib/systemd/systemd")


def main():
    packages, kernel, tree = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
    tests = sys.argv[4:]
    with tempfile.TemporaryDirectory() as scratch:
        added = pathlib.Path(scratch) / "added"
        add_tests(added, packages, tests)
        pack(tree, f"{scratch}/tree", LEFT_OUT)
        pack(added, f"{scratch}/added.cpio")
        subprocess.run("cat tree added.cpio >initrd && rm -r tree added added.cpio", shell=True, check=True, cwd=scratch)
        return boot.run(EMULATOR, next((kernel / "boot").glob("vmlinuz-*")), f"{scratch}/initrd", tests)


if __name__ == "__main__":
    sys.exit(main())
