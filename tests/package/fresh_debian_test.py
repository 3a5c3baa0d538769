"""A fresh Debian: the packages installed, used, upgraded, removed; a clone of the tree. As root; fetches Debian packages."""

import glob
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from newer import make_newer

PACKAGES = os.path.abspath(os.environ["PACKAGES"])
ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
PATIENCE = 1800
# What a package manager itself leaves behind.
ITS_OWN = re.compile(r"^(var/(lib/(dpkg|apt|ucf|systemd)|log|cache)|etc/ld\.so\.cache|packages|proc|sys|dev|run|tmp|root)(/|$)")
USER = """
#include <heapprofd/heap_profile.h>
int main(void) {
  static char block[64];
  uint32_t heap = AHeapProfile_registerHeap(AHeapInfo_create("fresh.heap"));
  AHeapProfile_reportAllocation(heap, (uint64_t)(uintptr_t)block, sizeof(block));
  return 0;
}
"""


def files_of(root):
    found = set()
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.relpath(os.path.join(folder, name), root)
            if not ITS_OWN.match(path):
                found.add(path)
    return found


class FreshDebian(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if os.geteuid() != 0 or not shutil.which("mmdebstrap"):
            raise unittest.SkipTest("needs root and mmdebstrap")
        holder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(holder.cleanup)
        cls.root = os.path.join(holder.name, "root")
        subprocess.run(["mmdebstrap", "--quiet", "--variant=minbase", "bookworm", cls.root], check=True, timeout=PATIENCE)
        os.mkdir(os.path.join(cls.root, "packages"))
        for path in glob.glob(os.path.join(PACKAGES, "*.deb")):
            shutil.copy(path, os.path.join(cls.root, "packages"))

    def run_there(self, script):
        """A shell in namespaces of its own: what it mounts and starts ends with it."""
        mounts = f"mount -t proc proc {self.root}/proc && mount --rbind /dev {self.root}/dev && mount -t tmpfs tmpfs {self.root}/tmp"
        result = subprocess.run(["unshare", "--mount", "--pid", "--fork", "sh", "-c",
                                 f'{mounts} && exec chroot {self.root} env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin '
                                 'DEBIAN_FRONTEND=noninteractive sh -ec "$1"', "sh", script],
                                capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(result.returncode, 0, (script, result.stdout, result.stderr))
        return result.stdout

    def add_newer(self, package):
        (deb,) = glob.glob(os.path.join(PACKAGES, package + "_*.deb"))
        make_newer(deb, os.path.join(self.root, "packages", package + "_next.deb"))

    def use_the_tool(self):
        self.run_there("heap_profile -i 1 -o /tmp/profile -- ls / && test -s /tmp/profile/report.html && "
                       "traceconv text /tmp/profile/raw-trace | grep -q profile_packet")
        # Attached to, by way of the service that heap_profile starts for it.
        self.assertIn("libc.malloc", self.run_there(
            "sleep 60 & heap_profile -d 1000 -o /tmp/profile -p $! && traceconv text /tmp/profile/raw-trace | grep -m1 libc.malloc"))

    def use_the_library(self):
        with open(os.path.join(self.root, "packages", "user.c"), "w") as file:
            file.write(USER)
        self.run_there("gcc -g /packages/user.c $(pkg-config --cflags --libs heapprofd-client) -o /tmp/user && "
                       "heap_profile --all-heaps -i 1 -o /tmp/profile -- /tmp/user && "
                       "ls /tmp/profile | grep -q fresh.heap")

    def test_install_use_upgrade_remove(self):
        self.run_there("apt-get -qq update && apt-get -qq install --no-install-recommends gcc libc6-dev pkg-config >/dev/null")
        self.run_there("apt-get -qq install --no-install-recommends $(dpkg-deb -f /packages/heapprofd-daemon_*.deb Depends | "
                       "tr , '\\n' | sed 's/(.*//') >/dev/null")
        before = files_of(self.root)
        self.run_there("apt-get -qq install --no-install-recommends /packages/*.deb")
        self.use_the_tool()
        self.use_the_library()
        for package in ("heapprofd", "heapprofd-daemon", "libheapprofd-client1", "libheapprofd-client-dev"):
            self.add_newer(package)
        self.run_there("apt-get -qq install --no-install-recommends /packages/*_next.deb")
        versions = self.run_there("dpkg-query -W -f '${Version}\\n' heapprofd heapprofd-daemon libheapprofd-client1")
        self.assertEqual(versions.count("+next"), 3)
        self.use_the_tool()
        self.run_there("apt-get -qq purge heapprofd heapprofd-daemon libheapprofd-client1 libheapprofd-client-dev")
        self.assertEqual(files_of(self.root) - before, set())

    def build_sidecar(self):
        """What its Dockerfile says, without Docker: this is the Debian that it begins with."""
        with open(os.path.join(ROOT, "packaging", "sidecar", "Dockerfile")) as file:
            steps = re.sub(r"\\\n|^#.*\n", "", file.read(), flags=re.MULTILINE).splitlines()
        for step in steps:
            word, rest = step.split(" ", 1)
            if word == "FROM":
                self.assertEqual(rest, "debian:bookworm-slim")
            elif word == "COPY":
                *patterns, to = rest.split()
                os.makedirs(self.root + to)
                for pattern in patterns:
                    (path,) = glob.glob(os.path.join(PACKAGES, pattern))
                    shutil.copy(path, self.root + to)
            elif word == "RUN":
                self.run_there(rest)
            elif word == "ENTRYPOINT":
                return json.loads(rest)
            else:
                self.assertEqual(word, "WORKDIR")
                os.makedirs(self.root + rest, exist_ok=True)
        raise AssertionError("it has no ENTRYPOINT")

    def test_the_sidecar_looks_into_another_container(self):
        shutil.rmtree(self.root + "/packages")
        entry = self.build_sidecar()
        with subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", "sh", "-c", f"echo ready; exec sleep {PATIENCE}"],
                              stdout=subprocess.PIPE, text=True) as target:
            self.addCleanup(target.kill)
            self.assertEqual(target.stdout.readline(), "ready\n")
            with open(f"/proc/{target.pid}/task/{target.pid}/children") as children:
                pid = children.read().strip()
            script = f'mount -t proc proc {self.root}/proc && mount -t tmpfs tmpfs {self.root}/tmp && exec chroot {self.root} "$@"'
            said = subprocess.run(["nsenter", "-t", pid, "-p", "unshare", "--mount", "sh", "-c", script, "sh", *entry, "doctor", "-p", "1"],
                                  capture_output=True, text=True, timeout=PATIENCE)
            target.kill()
        self.assertEqual(said.returncode, 0, said.stdout + said.stderr)
        self.assertRegex(said.stdout, r"ok    allocator in \S+/libc\.so\.6")

    def test_without_packages_a_clone_is_enough(self):
        """It installs what it needs and builds; what is not committed is not in it."""
        subprocess.run(["git", "clone", "--quiet", "--depth", "1", "file://" + ROOT, os.path.join(self.root, "root", "clone")],
                       check=True)
        self.run_there("cd /root/clone && tools/heap_profile -o /tmp/profile -- ls / && test -s /tmp/profile/report.html")


if __name__ == "__main__":
    unittest.main()
