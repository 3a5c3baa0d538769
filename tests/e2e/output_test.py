"""What stands at the place that -o names afterwards; and where root's results go when another user owns the directory that
they are to be in, and renames and links there."""

import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

from hprof_dump import phone
from profile_run import HEAP_PROFILE, program
from running_process import MAY_ATTACH
from service_run import Patient, Place, Recording
from with_directory import WithRecording

MALLORY = 61001
PRECIOUS = "precious"
WAITING = f"""
import subprocess, sys
subprocess.run([{program("known_stacks")!r}], stdout=subprocess.DEVNULL)
print("ready", flush=True)
sys.stdin.readline()
"""


@unittest.skipUnless(os.geteuid() == 0, "only root writes where others may not")
class OthersDirectory(unittest.TestCase):
    def setUp(self):
        self.parent = pathlib.Path(tempfile.mkdtemp(prefix="output_test_", dir="/tmp"))
        self.addCleanup(shutil.rmtree, self.parent)
        self.victim = self.parent / "of_root"
        self.victim.mkdir(mode=0o700)
        self.his = self.parent / "his"
        self.his.mkdir()
        os.chown(self.his, MALLORY, MALLORY)
        self.parent.chmod(0o755)
        self.out = self.his / "out"
        self.names = ["raw-trace", "report.html", "symbols", "symbolized-trace", "deobfuscation-packets", "stats.json"]
        for name in self.names:
            (self.victim / name).write_text(PRECIOUS)
        mapping = self.parent / "mapping"
        mapping.write_text("a.B -> c:\n")
        self.env = {**os.environ, "PERFETTO_BINARY_PATH": os.path.dirname(program("known_stacks")),
                    "PERFETTO_PROGUARD_MAP": str(mapping)}

    def as_mallory(self, script):
        subprocess.run(["/bin/sh", "-ec", script], user=MALLORY, group=MALLORY, extra_groups=[], cwd=self.his, check=True)

    def swap(self):
        self.as_mallory(f"mv out old; ln -s {self.victim} out")

    def check_victim(self):
        self.assertEqual(sorted(os.listdir(self.victim)), sorted(self.names))
        for name in self.names:
            self.assertEqual((self.victim / name).read_text(), PRECIOUS, name)

    def check_results(self, stderr, names):
        """They are in the directory that root has made, and called what it was called."""
        self.check_victim()
        found = os.listdir(self.his / "old")
        self.assertEqual(set(names) - set(found), set(), stderr)
        self.assertTrue(any(name.startswith("heap_dump.") for name in found), found)
        self.assertIn(f"{self.out}/raw-trace", stderr)
        self.assertNotIn("/proc/", stderr)

    def test_of_a_program_they_go_to_the_directory_that_was_made(self):
        process = subprocess.Popen([HEAP_PROFILE, "-i", "1", "-o", self.out, "--", sys.executable, "-c", WAITING], text=True,
                                   env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), "ready\n")
        self.swap()
        stderr = process.communicate("\n", timeout=60)[1]
        self.assertEqual(process.returncode, 0, stderr)
        self.check_results(stderr, self.names[:-1])
        self.assertIn(f"{self.out}/report.html", stderr)

    @unittest.skipUnless(MAY_ATTACH, "attaching is not allowed here")
    def test_of_a_service_they_go_to_the_directory_that_was_made(self):
        place = Place()
        self.addCleanup(place.close)
        patient = Patient(place)
        self.addCleanup(patient.kill)
        patient.wait_ready()
        recording = Recording(place, [], command=[HEAP_PROFILE, "-i", "1", "-p", str(patient.pid), "-o", str(self.out)])
        self.addCleanup(shutil.rmtree, recording.parent, ignore_errors=True)
        recording.wait_active()
        patient.tell("a")
        self.swap()
        recording.finish()
        self.check_results(recording.stderr, ["raw-trace", "report.html"])

    def trace(self):
        path = self.parent / "own"
        subprocess.run([HEAP_PROFILE, "-q", "--no-report", "-i", "1", "-o", path, "--", program("known_stacks")], check=True,
                       stdout=subprocess.DEVNULL)
        return path / "raw-trace"

    def refused(self, *command, **kwargs):
        done = subprocess.run([HEAP_PROFILE, *command], capture_output=True, text=True, check=False, **kwargs)
        self.assertIn(f"the link link on the way there belongs to user {MALLORY}, and what it leads to does not; "
                      "give the path without it", done.stderr)
        self.assertNotEqual(done.returncode, 0)
        self.check_victim()

    def test_a_link_of_his_does_not_lead_root_to_what_is_not_his(self):
        trace = self.trace()
        self.as_mallory(f"ln -s {self.victim} link")
        link = self.his / "link"
        self.refused("report", "-o", link / "report.html", trace)
        self.refused("export", "--format", "folded", "-o", link / "symbols", trace)
        self.refused("traceconv", "profile", "--output-dir", link, trace)
        self.refused("traceconv", "text", trace, link / "symbols")
        self.refused("-q", "-o", link / "new", "--", "true")
        self.refused("-q", "-o", self.parent / "other", "--", program("known_stacks"),
                     env={**os.environ, "HEAPPROFD_STATS_JSON": str(link / "stats.json")})

    def test_a_link_of_his_to_what_is_his_is_followed(self):
        trace = self.trace()
        self.as_mallory("mkdir own; ln -s own link")
        subprocess.run([HEAP_PROFILE, "report", "-q", "-o", self.his / "link" / "report.html", trace], check=True)
        self.assertEqual(os.listdir(self.his / "own"), ["report.html"])


class WhatIsNoFile(WithRecording):
    """Devices are made here: whoever replaces one of the machine's does harm."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.dump = cls.directory / "dump.hprof"
        cls.dump.write_bytes(phone())

    def commands(self, output):
        """All that write where they are told; at least some bytes, but for `symbolize`."""
        return [("export", "--format", "folded", "-o", output, self.trace), ("report", "-q", "-o", output, self.trace),
                ("hprof", "conv", self.dump, output), ("hprof", "trace", self.dump, output),
                *(("traceconv", form, self.trace, output) for form in ("text", "symbolize", "decompress_packets", "bundle"))]

    def place(self, make):
        path = self.directory / "place"
        make(path)
        self.addCleanup(path.unlink)
        return path

    def run_all(self, output, code=0, words=""):
        for command in self.commands(output):
            with self.subTest(command):
                done = subprocess.run([HEAP_PROFILE, *command], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                                      timeout=60)
                wrote_nothing = command[1] == "symbolize"
                self.assertEqual(done.returncode, 0 if wrote_nothing else code, done.stderr)
                if not wrote_nothing:
                    self.assertIn(words, done.stderr)

    def device(self, minor):
        def make(path):
            try:
                os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, minor))
                os.close(os.open(path, os.O_WRONLY))
            except OSError as error:
                self.skipTest(f"no devices can be made here: {error}")
        return self.place(make)

    def test_a_device_is_written_into(self):
        null = self.device(3)
        self.run_all(null)
        self.assertTrue(stat.S_ISCHR(null.lstat().st_mode))

    def test_what_a_device_does_not_take_is_told(self):
        full = self.device(7)
        self.run_all(full, 1, f"cannot write {full}: No space left on device")
        self.assertTrue(stat.S_ISCHR(full.lstat().st_mode))

    def test_a_pipe_is_written_into(self):
        expected = subprocess.run([HEAP_PROFILE, "export", "--format", "folded", self.trace], capture_output=True, check=True).stdout
        pipe = self.place(os.mkfifo)
        with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
            subprocess.run([HEAP_PROFILE, "export", "--format", "folded", "-o", pipe, self.trace], check=True, timeout=60)
            self.assertEqual(reader.communicate(timeout=60)[0], expected)
        self.assertTrue(stat.S_ISFIFO(pipe.lstat().st_mode))

    def test_descriptors_that_have_a_name(self):
        expected = subprocess.run([HEAP_PROFILE, "export", "--format", "folded", self.trace], capture_output=True, check=True).stdout
        command = f"{HEAP_PROFILE} export --format folded -o %s {self.trace}"
        for script in ("%s | cat" % (command % "/dev/stdout"), "%s 63>&1 | cat" % (command % "/dev/fd/63"),
                       "exec 3>&1; %s" % (command % ">(cat >&3)") + "; wait $!", "%s" % (command % "/proc/self/fd/1")):
            with self.subTest(script):
                done = subprocess.run(["/bin/bash", "-c", script], capture_output=True, check=False, timeout=60)
                self.assertEqual((done.returncode, done.stdout), (0, expected), done.stderr)

    def test_what_a_link_leads_to_is_replaced(self):
        target = self.place(lambda path: path.write_text("old"))
        link = self.directory / "link"
        link.symlink_to(target.name)
        self.addCleanup(link.unlink)
        for command in self.commands(link):
            with self.subTest(command):
                target.write_text("old")
                subprocess.run([HEAP_PROFILE, *command], stderr=subprocess.DEVNULL, check=True, timeout=60)
                self.assertTrue(link.is_symlink())
                self.assertNotEqual(target.read_text(errors="replace"), "old")

    def test_a_directory_is_named(self):
        output = self.directory / "out"
        for command in self.commands(output):
            with self.subTest(command):
                done = subprocess.run([HEAP_PROFILE, *command], capture_output=True, text=True, check=False, timeout=60)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(f"cannot create {output}: it is a directory; name a file in it", done.stderr)


class TraceStreams(unittest.TestCase):
    """Of `perfetto -o`, whose service writes to files only."""

    MARKER = bytes.fromhex("82477a76b28d42ba81dc33326d57a079")

    def setUp(self):
        self.place = Place()
        self.addCleanup(self.place.close)
        self.files = tempfile.TemporaryDirectory()
        self.addCleanup(self.files.cleanup)
        self.config = os.path.join(self.files.name, "config")
        with open(self.config, "wb") as file:
            subprocess.run([HEAP_PROFILE, "--print-config", "-n", "nobody", "-d", "10"], stdout=file, check=True)
        self.env = {**os.environ, **self.place.env}
        self.command = [os.path.join(os.environ["COMPAT"], "perfetto"), "-c", self.config, "--txt", "-o"]

    def test_names_of_standard_output(self):
        file = os.path.join(self.files.name, "trace")
        for output in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
            for shell in (f"{' '.join(self.command)} {output} | cat", f"{' '.join(self.command)} {output} > {file}; cat {file}"):
                with self.subTest(shell):
                    done = subprocess.run(["/bin/sh", "-c", shell], env=self.env, capture_output=True, timeout=60, check=True)
                    self.assertIn(self.MARKER, done.stdout, done.stderr)
                    self.assertEqual(done.stderr, b"")

    def test_a_pipe_that_has_a_name(self):
        pipe = os.path.join(self.files.name, "pipe")
        os.mkfifo(pipe)
        with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
            subprocess.run([*self.command, pipe], env=self.env, timeout=60, check=True)
            self.assertIn(self.MARKER, reader.communicate(timeout=60)[0])
        self.assertTrue(stat.S_ISFIFO(os.lstat(pipe).st_mode))

    def test_a_terminal_gets_no_trace(self):
        master, terminal = os.openpty()
        self.addCleanup(os.close, master)
        done = subprocess.run([*self.command, "/dev/stdout"], env=self.env, stdout=terminal, stderr=subprocess.PIPE, text=True, check=False,
                              timeout=60)
        os.close(terminal)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("cannot write the trace to /dev/stdout: it is a terminal, and a trace is no text; name a file by -o", done.stderr)
        self.assertRaises(OSError, os.read, master, 1)  # nothing was written


@unittest.skipUnless(os.geteuid() == 0, "only root has rights that others have not")
class OthersPipes(WithRecording):
    def test_root_writes_into_no_pipe_of_others_and_follows_no_link_of_theirs(self):
        self.directory.chmod(0o755)
        pipe, link = self.directory / "pipe", self.directory / "link"
        os.mkfifo(pipe)
        os.chown(pipe, MALLORY, MALLORY)
        link.symlink_to(self.trace)
        os.lchown(link, MALLORY, MALLORY)
        size = self.trace.stat().st_size
        for output, words in [(pipe, f"cannot write {pipe}: it belongs to user {MALLORY}; remove it, or name another file"),
                              (link, f"cannot create {link}: it is a link of user {MALLORY}; remove it, or name what it leads to")]:
            done = subprocess.run([HEAP_PROFILE, "export", "--format", "folded", "-o", output, self.trace], capture_output=True, text=True,
                                  check=False, timeout=60)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(words, done.stderr)
        self.assertEqual(self.trace.stat().st_size, size)
