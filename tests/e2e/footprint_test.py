"""What the kernel counts for a program because it is recorded: the table in docs/recording.md holds, and a program that locks
its memory, dumps core or runs from a file system that is unmounted goes on as it would without us."""

import os
import re
import resource
import subprocess
import unittest

from profile_run import HEAP_PROFILE, program
from running_process import MAY_ATTACH, Engine, Running, wait_until
from with_directory import WithDirectory

IS_ROOT = os.geteuid() == 0
KIB = 1024
MIB = 1024 * KIB
LOCK_LIMIT = 8 * MIB  # Debian's
PAGE = "docs/recording.md"
WRITES_CORES = not open("/proc/sys/kernel/core_pattern").read().startswith(("|", "/"))


def as_ordinary_user(*command, lockable=LOCK_LIMIT):
    """The command, without the right to lock as much as it likes."""
    without_right = ["setpriv", "--bounding-set", "-ipc_lock"] if IS_ROOT else []
    return [*without_right, "prlimit", f"--memlock={lockable}:{lockable}", *command]


def told(process, letter):
    process.stdin.write(letter)
    process.stdin.flush()
    return process.stdout.readline().strip()


def limits_in_table():
    """{row: (with --, with -p)}, in bytes or numbers, of the table in the page."""
    path = os.path.join(os.path.dirname(__file__), "..", "..", PAGE)
    units = {"KiB": KIB, "MiB": MIB, "": 1}

    def value(cell):
        number, unit = re.match(r"([\d.]+) ?(KiB|MiB|)", cell.strip()).groups()
        return float(number) * units[unit]

    rows = {}
    with open(path) as file:
        for line in file:
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if len(cells) == 4 and re.match(r"[\d.]+ ?(KiB|MiB|$)", cells[1]):
                rows[cells[0]] = (value(cells[1]), value(cells[2]))
    return rows


class Footprint:
    """What the kernel counts for a process now."""

    def __init__(self, pid):
        with open(f"/proc/{pid}/status") as file:
            fields = dict(line.split(":", 1) for line in file)
        self.space = int(fields["VmSize"].split()[0]) * KIB
        self.resident = int(fields["VmRSS"].split()[0]) * KIB
        self.locked = int(fields["VmLck"].split()[0]) * KIB
        self.threads = int(fields["Threads"])
        self.signals = fields["SigCgt"].strip(), fields["SigBlk"].strip(), fields["SigIgn"].strip()
        self.descriptors = len(os.listdir(f"/proc/{pid}/fd"))


class Recorded(WithDirectory):
    def setUp(self):
        super().setUp()
        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2)

    def launched(self, *prefix, options=()):
        """footprint under heap_profile; `prefix` comes before it."""
        return subprocess.Popen([*prefix, HEAP_PROFILE, "-i", "1", "--no-report", "-o", self.path("out"), *options, "--",
                                 program("footprint")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True, cwd=self.directory)

    def child_of(self, recorder):
        with open(f"/proc/{recorder.pid}/task/{recorder.pid}/children") as file:
            return next(int(pid) for pid in file.read().split()
                        if os.readlink(f"/proc/{pid}/exe") == os.path.realpath(program("footprint")))

    def ended(self, recorder):
        recorder.stdin.close()
        recorder.stdin = None
        _, errors = recorder.communicate(timeout=120)
        return errors

    def attached(self, engine, pid):
        recording = engine.tool("-p", str(pid), "-i", "1", "--no-report", "-o", self.path(f"of-{pid}"), stderr=subprocess.PIPE,
                                text=True)
        self.addCleanup(recording.communicate)
        self.addCleanup(recording.kill)
        said = []
        while "Profiling active" not in (said or [""])[-1]:
            said.append(recording.stderr.readline())
            self.assertTrue(said[-1], said)
        return recording


class LockedMemory(Recorded):
    def test_an_ordinary_program_can_lock_its_memory(self):
        recorder = self.launched(*as_ordinary_user())
        self.assertEqual(recorder.stdout.readline(), "ready\n")
        self.assertEqual(told(recorder, "l"), "locked")
        self.assertEqual(told(recorder, "a"), "kept")
        pid = self.child_of(recorder)
        with Running(as_ordinary_user(program("footprint")), stdin=subprocess.PIPE) as alone:
            self.assertEqual(told(alone.process, "l"), "locked")
            self.assertEqual(told(alone.process, "a"), "kept")
            self.assertLessEqual(Footprint(pid).locked, Footprint(alone.pid).locked + 300 * KIB)
        errors = self.ended(recorder)
        self.assertEqual(recorder.returncode, 0, errors)

    @unittest.skipUnless(IS_ROOT, "an ordinary user's programs may not lock all they like")
    def test_of_a_privileged_program_no_memory_of_ours_is_locked(self):
        recorder = self.launched()
        self.assertEqual(recorder.stdout.readline(), "ready\n")
        with Running([program("footprint")], stdin=subprocess.PIPE) as alone:
            before = Footprint(self.child_of(recorder)).locked
            self.assertEqual(told(recorder, "l"), told(alone.process, "l"))
            grown = Footprint(self.child_of(recorder)).locked - before
            self.assertLessEqual(grown, Footprint(alone.pid).locked + 300 * KIB)
        self.ended(recorder)

    @unittest.skipUnless(MAY_ATTACH, "attaching is not allowed here")
    def test_an_attached_program_can_lock_its_memory(self):
        with Engine() as engine, Running(as_ordinary_user(program("footprint")), stdin=subprocess.PIPE) as target:
            self.attached(engine, target.pid)
            self.assertEqual(told(target.process, "l"), "locked")
            self.assertEqual(told(target.process, "a"), "kept")

    @unittest.skipUnless(MAY_ATTACH, "attaching is not allowed here")
    def test_a_program_that_has_locked_its_memory_is_attached_to(self):
        with Engine() as engine, Running(as_ordinary_user(program("footprint")), stdin=subprocess.PIPE) as target:
            self.assertEqual(told(target.process, "l"), "locked")
            self.attached(engine, target.pid)
            self.assertEqual(told(target.process, "a"), "kept")

    @unittest.skipUnless(MAY_ATTACH, "attaching is not allowed here")
    def test_where_there_is_no_room_to_lock_more_the_limit_is_named(self):
        with Engine() as engine, Running(as_ordinary_user(program("footprint")), stdin=subprocess.PIPE) as target:
            self.assertEqual(told(target.process, "l"), "locked")
            resource.prlimit(target.pid, resource.RLIMIT_MEMLOCK, (Footprint(target.pid).locked + MIB,) * 2)
            result = subprocess.run([HEAP_PROFILE, "-p", str(target.pid), "-d", "50", "-o", self.path("none")], text=True,
                                    capture_output=True, env={**os.environ, **engine.env})
            self.assertRegex(result.stderr, r"MiB of memory for the profiler exceed the limit of what it may lock "
                                            r"\(mlockall, RLIMIT_MEMLOCK\), \d+ MiB; raise it \(prlimit --pid \d+ "
                                            r"--memlock=unlimited, as root\)")
            self.assertNotIn("try again", result.stderr)
            self.assertEqual(told(target.process, "a"), "kept")


@unittest.skipUnless(WRITES_CORES, "core dumps of this machine go elsewhere")
class Cores(Recorded):
    def core(self):
        """Size of the only core dump, and its path. It may be named by its process."""
        names = [name for name in os.listdir(self.directory) if name.startswith("core")]
        self.assertEqual(len(names), 1, os.listdir(self.directory))
        path = self.path(names[0])
        os.rename(path, self.path("dumped"))
        return os.path.getsize(self.path("dumped"))

    def alone(self):
        with Running([program("footprint")], stdin=subprocess.PIPE, cwd=self.directory) as target:
            target.process.stdin.write("d")
            target.process.stdin.flush()
            target.process.wait()
        return self.core()

    def backtrace(self):
        return subprocess.run(["gdb", "-batch", "-nx", "-ex", "bt", program("footprint"), self.path("dumped")], text=True,
                              capture_output=True).stdout

    def test_a_core_dump_is_as_large_as_without_us(self):
        most = self.alone() + limits_in_table()["Core dump"][0]
        recorder = self.launched()
        self.assertEqual(recorder.stdout.readline(), "ready\n")
        pid = self.child_of(recorder)
        resource.prlimit(pid, resource.RLIMIT_CORE, (4 * MIB,) * 2)
        recorder.stdin.write("d")
        self.ended(recorder)
        self.assertLessEqual(self.core(), most)
        self.assertRegex(self.backtrace(), r"(?s) die .* main ")

    @unittest.skipUnless(MAY_ATTACH, "attaching is not allowed here")
    def test_so_is_that_of_an_attached_process(self):
        most = self.alone() + limits_in_table()["Core dump"][1]
        with Engine() as engine, Running([program("footprint")], stdin=subprocess.PIPE, cwd=self.directory) as target:
            self.attached(engine, target.pid)
            self.assertEqual(told(target.process, "a"), "kept")
            resource.prlimit(target.pid, resource.RLIMIT_CORE, (4 * MIB,) * 2)
            target.process.stdin.write("d")
            target.process.stdin.flush()
            target.process.wait()
        self.assertLessEqual(self.core(), most)
        self.assertRegex(self.backtrace(), r"(?s) die .* main ")


class Table(Recorded):
    def compare(self, recorded, alone, column):
        limits = {row: values[column] for row, values in limits_in_table().items()}
        self.assertLessEqual(recorded.space - alone.space, limits["Address space"])
        self.assertLessEqual(recorded.resident - alone.resident, limits["Resident memory"])
        self.assertLessEqual(recorded.descriptors - alone.descriptors, limits["Descriptors"])
        self.assertEqual(recorded.threads, alone.threads)
        self.assertEqual(recorded.signals, alone.signals)

    def test_a_launched_program(self):
        recorder = self.launched()
        self.assertEqual(recorder.stdout.readline(), "ready\n")
        with Running([program("footprint")], stdin=subprocess.PIPE) as alone:
            self.compare(Footprint(self.child_of(recorder)), Footprint(alone.pid), 0)
        self.ended(recorder)

    def test_a_launched_program_whose_memory_is_limited(self):
        recorder = self.launched(*as_ordinary_user())
        self.assertEqual(recorder.stdout.readline(), "ready\n")
        with Running([program("footprint")], stdin=subprocess.PIPE) as alone:
            grown = Footprint(self.child_of(recorder)).space - Footprint(alone.pid).space
            self.assertLessEqual(grown, limits_in_table()["Address space, memory limited"][0])
        self.ended(recorder)

    @unittest.skipUnless(MAY_ATTACH, "attaching is not allowed here")
    def test_an_attached_program(self):
        for row, prefix in (("Address space", []), ("Address space, memory limited", as_ordinary_user())):
            with Engine() as engine, Running([*prefix, program("footprint")], stdin=subprocess.PIPE) as target:
                alone = Footprint(target.pid)
                self.attached(engine, target.pid)
                recorded = Footprint(target.pid)
                self.assertLessEqual(recorded.space - alone.space, limits_in_table()[row][1])
                if not prefix:
                    self.compare(recorded, alone, 1)


MOUNT_AND_RUN = """
set -e
mount -t tmpfs x "$0"
cp "$1" "$0/mapped"
exec 3>"$2"
echo mounted >&3
"$0/mapped" 1 <"$3"
until umount "$0" 2>"$4"; do sleep 0.05; done
echo unmounted >&3
"""


@unittest.skipUnless(IS_ROOT and subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0,
                     "file systems may not be mounted here")
class Mounts(Recorded):
    """The script does not come to an end as long as its mount is busy."""

    def script(self):
        os.mkdir(self.path("mount"))
        os.mkfifo(self.path("input"))
        return ["/bin/sh", "-c", MOUNT_AND_RUN, self.path("mount"), program("patient"), self.path("said"), self.path("input"),
                self.path("busy")]

    def said(self, word):
        def is_said():
            try:
                with open(self.path("said")) as file:
                    return word in file.read()
            except FileNotFoundError:
                return False
        wait_until(is_said)

    def functions(self, directory):
        result = subprocess.run([HEAP_PROFILE, "show", os.path.join(directory, "raw-trace")], text=True, capture_output=True,
                                check=True)
        return result.stdout

    def test_what_has_run_under_us_can_be_unmounted_and_has_its_names(self):
        recorder = subprocess.Popen(["unshare", "-m", HEAP_PROFILE, "-i", "1", "--no-report", "-o", self.path("out"), "--",
                                     *self.script()], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        with open(self.path("input"), "w"):
            self.said("mounted")
        self.said("unmounted")
        _, errors = recorder.communicate(timeout=120)
        self.assertEqual(recorder.returncode, 0, errors)
        self.assertIn("kept_block", self.functions(self.path("out")))

    @unittest.skipUnless(MAY_ATTACH, "attaching is not allowed here")
    def test_so_can_what_was_attached_to(self):
        with Engine() as engine, subprocess.Popen(["unshare", "-m", *self.script()], stdout=subprocess.PIPE) as script, \
                Running([program("patient"), "1"], stdin=subprocess.PIPE) as other:
            with open(self.path("input"), "w") as to_program:
                self.said("mounted")
                self.assertEqual(script.stdout.readline(), b"ready\n")
                with open(f"/proc/{script.pid}/task/{script.pid}/children") as file:
                    pid = file.read().split()[0]
                recording = engine.tool("-p", f"{pid},{other.pid}", "-i", "1", "--no-report", "-o", self.path("attached"),
                                        stderr=subprocess.PIPE, text=True)
                while "Profiling active" not in (line := recording.stderr.readline()):
                    self.assertTrue(line)
                to_program.write("a")
                to_program.flush()
                self.assertEqual(script.stdout.readline(), b"kept\n")
            self.said("unmounted")
            self.assertIsNone(recording.poll())
            recording.terminate()
            recording.communicate(timeout=120)
        self.assertIn("kept_block", self.functions(self.path("attached")))


if __name__ == "__main__":
    unittest.main()
