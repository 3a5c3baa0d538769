"""The packages that tools/package has made (PACKAGES), whoever would have made them (AGAIN), and the tarball."""

import glob
import gzip
import os
import re
import shutil
import subprocess
import tempfile
import unittest

PACKAGES = os.path.abspath(os.environ["PACKAGES"])
AGAIN = os.environ.get("AGAIN")
NAMES = {"heapprofd", "heapprofd-daemon", "libheapprofd-client1", "libheapprofd-client-dev"}
COMMANDS = ("heap_profile", "traceconv", "trace_processor_shell")
# Run-time libraries of the tarball's programs, the one that comes along first.
LIBRARIES = {"libZydis.so.4.0", "libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}


def output_of(*command, **kwargs):
    result = subprocess.run(command, capture_output=True, text=True, **kwargs)
    assert result.returncode == 0, (command, result.stdout, result.stderr)
    return result.stdout


class Packages(unittest.TestCase):
    """Each package's tree, unpacked."""

    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.debs = {os.path.basename(path).split("_")[0]: path for path in glob.glob(os.path.join(PACKAGES, "*.deb"))}
        cls.trees = {}
        for name, path in cls.debs.items():
            cls.trees[name] = os.path.join(directory.name, name)
            output_of("dpkg-deb", "-x", path, cls.trees[name])

    def path(self, package, name):
        path = os.path.join(self.trees[package], name)
        self.assertTrue(os.path.lexists(path), (package, name))
        return path

    def test_there_are_four(self):
        self.assertEqual(set(self.debs), NAMES)

    def test_each_has_what_it_is_for(self):
        for package, names in {
            "heapprofd": ["usr/bin/heap_profile", "usr/bin/traceconv", "usr/lib/heapprofd/libheapprofd_preload.so",
                          "usr/lib/heapprofd/platforms/$PLATFORM/libheapprofd_preload.so", "usr/share/doc/heapprofd/README.md"],
            "heapprofd-daemon": ["usr/bin/heapprofd", "lib/systemd/system/heapprofd.socket",
                                 "usr/lib/systemd/user/heapprofd.service"],
            "libheapprofd-client1": ["usr/lib/x86_64-linux-gnu/libheapprofd_client.so.1"],
            "libheapprofd-client-dev": ["usr/include/heapprofd/heap_profile.h", "usr/lib/x86_64-linux-gnu/libheapprofd_client.so",
                                        "usr/lib/x86_64-linux-gnu/libheapprofd_client.a",
                                        "usr/lib/x86_64-linux-gnu/pkgconfig/heapprofd-client.pc",
                                        "usr/lib/x86_64-linux-gnu/cmake/heapprofd/heapprofdConfig.cmake"],
        }.items():
            for name in [*names, f"usr/share/doc/{package}/copyright", f"usr/share/doc/{package}/changelog.gz"]:
                self.path(package, name)

    def test_the_pages_lead_to_what_is_installed(self):
        top = self.path("heapprofd", "usr/share/doc/heapprofd")
        links = 0
        for folder, _, files in os.walk(top):
            for name in (name for name in files if name.endswith(".md")):
                with open(os.path.join(folder, name)) as file:
                    text = re.sub(r"```.*?```|`[^`]*`", "", file.read(), flags=re.S)
                for link in re.findall(r"\]\(([^)#\s]+)", text):
                    if "://" not in link:
                        links += 1
                        self.assertTrue(os.path.exists(os.path.join(folder, link)), (name, link))
        self.assertGreater(links, 100)

    def test_no_file_is_in_two_packages(self):
        seen = {}
        for package, tree in self.trees.items():
            for folder, _, files in os.walk(tree):
                for name in files:
                    path = os.path.relpath(os.path.join(folder, name), tree)
                    self.assertNotIn(path, seen, (package, seen.get(path)))
                    seen[path] = package

    def test_the_library_asks_for_nothing(self):
        self.assertEqual(output_of("dpkg-deb", "-f", self.debs["libheapprofd-client1"], "Depends").strip(), "")

    def test_each_command_has_a_manual_page(self):
        told = output_of(self.path("heapprofd", "usr/bin/heap_profile"), "--help").split("\ncommands:\n")[1].split("\n\n")[0]
        verbs = re.findall(r"^  ([a-z]+) ", told, re.M)
        self.assertGreater(len(verbs), 9)
        pages = [("heapprofd", f"man1/{name}.1") for name in (*COMMANDS, *(f"heap_profile-{verb}" for verb in verbs))]
        for package, page in [*pages, ("heapprofd-daemon", "man8/heapprofd.8")]:
            with gzip.open(self.path(package, f"usr/share/man/{page}.gz"), "rt") as file:
                text = file.read()
            for part in (".SH NAME", ".SH SYNOPSIS", ".SH SEE ALSO"):
                self.assertIn(part, text, page)

    def test_each_command_has_completions(self):
        for package, name in [*(("heapprofd", name) for name in COMMANDS), ("heapprofd-daemon", "heapprofd")]:
            self.path(package, "usr/share/bash-completion/completions/" + name)
            self.path(package, f"usr/share/fish/vendor_completions.d/{name}.fish")
        for package, name in (("heapprofd", "heap_profile"), ("heapprofd-daemon", "heapprofd")):
            with open(self.path(package, "usr/share/zsh/vendor-completions/_" + name)) as file:
                self.assertIn(" " + name, file.readline())

    def test_nothing_names_the_place_where_it_was_built(self):
        place = os.path.realpath(os.path.join(PACKAGES, "..", "..", "..")).encode()
        for package, tree in self.trees.items():
            for folder, _, files in os.walk(tree):
                for path in (os.path.join(folder, name) for name in files):
                    if not os.path.islink(path):
                        with open(path, "rb") as file:
                            self.assertNotIn(place, file.read(), (package, path))

    @unittest.skipUnless(shutil.which("lintian"), "no lintian here")
    def test_lintian_has_nothing_to_say(self):
        result = subprocess.run(["lintian", "--fail-on", "error,warning", *self.debs.values()], stdout=subprocess.PIPE, text=True)
        self.assertEqual((result.stdout, result.returncode), ("", 0))

    @unittest.skipUnless(AGAIN, "made only once")
    def test_they_are_the_same_wherever_they_are_made(self):
        self.assertEqual(sorted(os.listdir(PACKAGES)), sorted(os.listdir(AGAIN)))
        for name in os.listdir(PACKAGES):
            with open(os.path.join(PACKAGES, name), "rb") as one, open(os.path.join(AGAIN, name), "rb") as other:
                self.assertTrue(one.read() == other.read(), name)


class Tarball(unittest.TestCase):
    """Unpacked somewhere, without anything of the environment."""

    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.directory = directory.name
        output_of("tar", "-xzf", *glob.glob(os.path.join(PACKAGES, "*.tar.gz")), "-C", cls.directory)
        (cls.root,) = glob.glob(os.path.join(cls.directory, "heapprofd-*"))

    def run_program(self, name, *arguments):
        return output_of(os.path.join(self.root, "bin", name), *arguments, cwd=self.directory,
                         env={"PATH": "/usr/bin:/bin", "TMPDIR": self.directory})

    def test_programs_need_few_libraries(self):
        for name in ("heap_profile", "heapprofd"):
            needed = re.findall(r"NEEDED.*\[(.*)\]", output_of("readelf", "-d", os.path.join(self.root, "bin", name)))
            self.assertLessEqual(set(needed), LIBRARIES, name)
            self.assertIn(self.root, output_of("ldd", os.path.join(self.root, "bin", name)))

    def test_programs_need_no_newer_libc_than_the_readme_says(self):
        with open(os.path.join(self.root, "share", "doc", "heapprofd", "README.md")) as file:
            (said,) = re.findall(r"glibc (2\.\d+) or later", file.read())
        for name in ("heap_profile", "heapprofd"):
            versions = re.findall(r"GLIBC_2\.(\d+)", output_of("objdump", "-T", os.path.join(self.root, "bin", name)))
            self.assertEqual(f"2.{max(map(int, versions))}", said, name)

    def test_a_program_is_profiled(self):
        self.run_program("heap_profile", "-i", "1", "-o", "profile", "--", "/bin/ls", "/")
        names = os.listdir(os.path.join(self.directory, "profile"))
        self.assertLessEqual({"raw-trace", "report.html"}, set(names))
        self.assertTrue(any(name.endswith(".pb.gz") for name in names), names)
        trace = os.path.join(self.directory, "profile", "raw-trace")
        self.assertIn("profile_packet", self.run_program("traceconv", "text", trace))
        self.assertIn("libc.malloc", self.run_program("trace_processor_shell", "-Q", "SELECT DISTINCT heap_name FROM "
                                                      "heap_profile_allocation", trace))

    def test_the_daemon_runs(self):
        self.assertIn("heapprofd 0.", self.run_program("heapprofd", "--version"))

    def test_what_is_linked_in_comes_with_its_licence(self):
        folder = os.path.join(self.root, "share", "doc", "heapprofd", "licences")
        self.assertIn("libprotobuf-dev", os.listdir(folder))
        for name in os.listdir(folder):
            self.assertGreater(os.path.getsize(os.path.join(folder, name)), 100, name)


if __name__ == "__main__":
    unittest.main()
