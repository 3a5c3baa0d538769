"""Where root's results go when another user owns the directory that they are to be in, and renames and links there."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from profile_run import HEAP_PROFILE, program
from running_process import MAY_ATTACH
from service_run import Patient, Place, Recording

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
