"""While somebody records by name every exec of the machine waits for a leave: nothing may make it wait for long.

Each attack lasts until the programs below have started, or ATTACK_S when they do not: then it is called off.
"""

import contextlib
import ctypes
import fcntl
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from profile_run import program
from running_process import GATE, MAY_ATTACH, MAY_CATCH, Engine, child_named, state_of, wait_until
from service_run import Recording

ATTACK_S = 8
PROMPT_S = 4  # a busy machine takes a while for a program; the bound of the gate is 0.4
NOBODY = 65534
PTRACE_SEIZE, PTRACE_INTERRUPT = 0x4206, 0x4207
TRUE = "/bin/true"


def threads_of(pid):
    return [int(tid) for tid in os.listdir(f"/proc/{pid}/task")]


def cgroup_root(kind, option):
    """Where a hierarchy is mounted that we can change; None: nowhere."""
    with open("/proc/mounts") as mounts:
        for line in mounts:
            _, point, found, options, *_ = line.split()
            if found == kind and (not option or option in options.split(",")) and "rw" in options.split(","):
                return point if os.access(os.path.join(point, "cgroup.procs"), os.W_OK) else None
    return None


def starts_promptly(call_off):
    """Whether a program starts while an attack goes on."""
    timer = threading.Timer(ATTACK_S, call_off)
    timer.start()
    begin = time.monotonic()
    # This thread must not wait for the exec with Python's lock: the timer needs it.
    child = os.fork()
    if child == 0:
        os.execv(TRUE, [TRUE])
    os.waitpid(child, 0)
    seconds = time.monotonic() - begin
    timer.cancel()
    timer.join()
    return seconds < PROMPT_S


@unittest.skipUnless(MAY_ATTACH and MAY_CATCH, "watching for new processes is not allowed here")
class ExecGateTest(unittest.TestCase):
    def setUp(self):
        # Where a core file would be written to.
        self.directory = tempfile.mkdtemp(prefix="hpd_")
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.directory)
        os.chmod(self.directory, 0o755)
        self.engine = Engine()
        self.addCleanup(self.engine.close)
        self.service = self.engine.service.pid

    def record(self, name="no_such_program"):
        recording = Recording(self.engine, ["-n", name]).wait_active()
        self.gate = child_named(self.service, GATE) or self.service
        return recording

    def assert_starts_promptly(self, call_off, times=1):
        for _ in range(times):
            self.assertTrue(starts_promptly(call_off), "a program did not start in time")

    def assert_said(self, recording):
        self.assertIn("cannot catch programs that have started since", recording.finish().stderr)

    def test_the_service_is_stopped(self):
        recording = self.record(os.path.basename(TRUE))
        go_on = lambda: os.kill(self.service, signal.SIGCONT)
        os.kill(self.service, signal.SIGSTOP)
        try:
            # Whom it traces already waits for it.
            wait_until(lambda: all(state_of(tid) == "T" for tid in threads_of(self.service)))
            self.assert_starts_promptly(go_on, times=3)
        finally:
            go_on()
        recording.finish()

    def test_the_gate_is_stopped(self):
        recording = self.record()
        os.kill(self.gate, signal.SIGSTOP)
        self.assert_starts_promptly(lambda: os.kill(self.gate, signal.SIGCONT), times=3)
        self.assert_said(recording)
        # The next recording has a new one.
        again = self.record("first_allocations")
        subprocess.run([program("first_allocations")], check=True)
        self.assertEqual(len(again.finish().pprofs), 1, again.stderr)

    def test_all_of_the_service_is_stopped(self):
        recording = self.record()
        for pid in (self.service, self.gate):
            os.kill(pid, signal.SIGSTOP)
        go_on = lambda: os.kill(self.service, signal.SIGCONT)
        try:
            self.assert_starts_promptly(go_on, times=3)
        finally:
            go_on()
        self.assert_said(recording)

    # The second version's freezer lets SIGKILL through, the first one's does not.
    def frozen(self, cgroup, freeze):
        """All of the service, from before its gate is there."""
        os.mkdir(cgroup)
        self.addCleanup(os.rmdir, cgroup)
        with open(os.path.join(cgroup, "cgroup.procs"), "w") as file:
            file.write(str(self.service))
        name, frozen, thawed = freeze

        def put(state):
            with open(os.path.join(cgroup, name), "w") as file:
                file.write(state)
        recording = self.record()
        put(frozen)
        try:
            self.assert_starts_promptly(lambda: put(thawed), times=3)
        finally:
            put(thawed)
        recording.finish()
        self.engine.close()

    def test_the_cgroup_is_frozen(self):
        root = cgroup_root("cgroup2", "")
        if root is None:
            self.skipTest("no cgroup of version 2 that can be written to")
        self.frozen(os.path.join(root, f"hpd_{os.getpid()}"), ("cgroup.freeze", "1", "0"))

    def test_the_cgroup_of_version_1_is_frozen(self):
        root = cgroup_root("cgroup", "freezer")
        if root is None:
            self.skipTest("no freezer of version 1 that can be written to")
        self.frozen(os.path.join(root, f"hpd_{os.getpid()}"), ("freezer.state", "FROZEN", "THAWED"))

    def test_the_gate_is_killed(self):
        recording = self.record()
        os.kill(self.gate, signal.SIGKILL)
        self.assert_starts_promptly(lambda: None, times=3)
        self.assert_said(recording)

    def test_the_gate_crashes_and_core_files_are_wanted(self):
        recording = self.record()
        with contextlib.suppress(OSError):
            resource.prlimit(self.gate, resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        os.kill(self.gate, signal.SIGSEGV)
        self.assert_starts_promptly(lambda: os.kill(self.gate, signal.SIGKILL), times=3)
        self.assertEqual(os.listdir(self.directory), [])
        recording.finish()

    def test_the_gate_is_traced(self):
        recording = self.record()
        libc = ctypes.CDLL(None, use_errno=True)
        libc.ptrace.argtypes = [ctypes.c_long] * 4
        threads = threads_of(self.gate)
        for tid in threads:
            self.assertEqual(libc.ptrace(PTRACE_SEIZE, tid, 0, 0), 0)
            libc.ptrace(PTRACE_INTERRUPT, tid, 0, 0)
        self.assert_starts_promptly(lambda: os.kill(self.gate, signal.SIGKILL), times=3)
        for tid in threads:  # its end is reported to us first
            with contextlib.suppress(ChildProcessError):
                os.waitpid(tid, 0x40000000)
        self.assert_said(recording)

    def test_the_gate_cannot_be_dumped_and_has_few_rights(self):
        recording = self.record()
        with open(f"/proc/{self.gate}/status") as file:
            status = file.read()
        self.assertEqual(threads_of(self.gate), [self.gate])
        self.assertIn("CapEff:\t0000000000280004", status)  # SYS_ADMIN, SYS_PTRACE, DAC_READ_SEARCH
        self.assertIn("NoNewPrivs:\t1", status)
        if not os.environ.get("SANITIZE"):  # whose runtime makes system calls of its own
            self.assertIn("Seccomp:\t2", status)  # a filter
        self.assertEqual(resource.prlimit(self.gate, resource.RLIMIT_CORE), (0, 0))
        recording.finish()

    def test_it_ends_with_a_service_that_is_killed(self):
        recording = self.record()
        os.kill(self.service, signal.SIGKILL)
        wait_until(lambda: not os.path.exists(f"/proc/{self.gate}/fd") or not os.listdir(f"/proc/{self.gate}/fd"))
        self.assert_starts_promptly(lambda: None)
        recording.process.kill()
        recording.finish(stop=None)

    # The kernel would have us wait for the owner of the lease until lease-break-time.
    def test_an_ordinary_user_has_a_lease_on_a_program(self):
        path = os.path.join(self.directory, "leased")
        shutil.copy(TRUE, path)
        os.chown(path, NOBODY, NOBODY)
        recording = self.record()
        holds, says = os.pipe()
        holder = os.fork()
        if holder == 0:
            os.setresuid(NOBODY, NOBODY, NOBODY)
            signal.signal(signal.SIGIO, signal.SIG_IGN)
            file = os.open(path, os.O_RDONLY)
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
            os.write(says, b"1")
            with contextlib.suppress(OSError):
                os.execv(path, [path])
            signal.pause()
        try:
            os.read(holds, 1)
            self.assert_starts_promptly(lambda: os.kill(holder, signal.SIGKILL), times=3)
            self.assertIsNotNone(child_named(self.service, GATE))
        finally:
            os.kill(holder, signal.SIGKILL)
            os.waitpid(holder, 0)
            os.close(holds)
            os.close(says)
        self.assertNotIn("cannot catch", recording.finish().stderr)

    def test_a_program_on_a_file_system_of_a_container_is_caught(self):
        path = os.path.join(self.directory, "contained")
        script = f"mount -t tmpfs none {self.directory} && cp {program('first_allocations')} {path} && echo ready && " \
                 f"read line && exec {path}"
        container = subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sh", "-c", script], text=True,
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if container.stdout.readline() != "ready\n":
            self.skipTest(f"no mount namespace of its own: {container.communicate()[1]}")
        recording = self.record("contained")
        container.communicate("\n")
        self.assertEqual(len(recording.finish().pprofs), 1, recording.stderr)

    def test_an_ordinary_user_serves_the_file_system_of_a_program(self):
        device = os.path.join(self.directory, "device")
        try:
            os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(10, 229))
            os.chmod(device, 0o666)
            os.close(os.open(device, os.O_RDWR))
        except OSError as error:
            self.skipTest(f"no FUSE device: {error}")
        place = os.path.join(self.directory, "place")
        os.mkdir(place)
        os.chown(place, NOBODY, NOBODY)
        shutil.copy(os.path.join(os.path.dirname(os.path.abspath(__file__)), "hostile_fuse.py"), self.directory)
        attack = subprocess.Popen([sys.executable, "-B", os.path.join(self.directory, "hostile_fuse.py"), device, place],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, user=NOBODY, group=NOBODY,
                                  extra_groups=[], start_new_session=True)
        call_off = lambda: os.killpg(attack.pid, signal.SIGKILL)
        try:
            answer = attack.stdout.readline().strip()
            if answer != "ready":
                self.skipTest(f"no FUSE in a user namespace: {answer}")
            recording = self.record()
            attack.stdin.write("\n")
            attack.stdin.flush()
            self.assertEqual(attack.stdout.readline().strip(), "open")
            self.assert_starts_promptly(call_off, times=3)
            self.assertIsNotNone(child_named(self.service, GATE))
        finally:
            call_off()
            attack.communicate()
        self.assertNotIn("cannot catch", recording.finish().stderr)


if __name__ == "__main__":
    unittest.main()
