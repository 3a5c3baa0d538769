"""Programs in containers: recorded from the host and from a sidecar, with the names of the image's own files."""

import contextlib
import ctypes
import os
import re
import shutil
import signal
import subprocess
import unittest

from profile_run import HEAP_PROFILE, program
from running_process import MAY_ATTACH, MAY_CATCH, Engine, child_named
from service_run import PRELOAD, Place, Recording
from with_directory import WithDirectory

BUILD = os.path.realpath(os.environ["BUILD_DIRECTORY"])
MUSL = "/lib/ld-musl-x86_64.so.1"
# The image has its program where the host, and the sidecar, have another one.
INSIDE = "/usr/bin/pldd"
NOBODY = 65534
SPACES = ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net"]
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, SECCOMP_RET_ALLOW = 38, 22, 2, 0x7FFF0000


def why_no_container(*options, **who):
    """What this machine says when a container is made so; empty: it makes it."""
    if not shutil.which("bwrap"):
        return "bubblewrap is not installed"
    made = subprocess.run(["bwrap", *options, "--ro-bind", "/", "/", "--proc", "/proc", "true"], capture_output=True, text=True, **who)
    return made.stderr


def put_under_a_filter():
    """A seccomp filter that allows everything, as a container's allows most."""

    class Instruction(ctypes.Structure):
        _fields_ = [("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte), ("k", ctypes.c_uint)]

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.POINTER(Instruction))]

    allow = Instruction(0x06, 0, 0, SECCOMP_RET_ALLOW)  # BPF_RET | BPF_K
    libc = ctypes.CDLL(None, use_errno=True)
    if (libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 or
            libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(Program(1, ctypes.pointer(allow)))) != 0):
        raise OSError(ctypes.get_errno(), "prctl")


def make_image(root, path):
    """A root directory with one program and its libraries; no shell, no /tmp, nothing of ours but a directory for its service."""
    for folder in ("usr/bin", "usr/lib", "proc", "run/heapprofd"):
        os.makedirs(os.path.join(root, folder))
    shutil.copy(path, root + INSIDE)
    needed = [MUSL] if "musl" in path else re.findall(r"(/\S+) \(0x", subprocess.run(
        ["ldd", path], capture_output=True, text=True, check=True).stdout)
    for library in needed:
        os.makedirs(os.path.dirname(root + library), exist_ok=True)
        shutil.copy(os.path.realpath(library), root + library)
    subprocess.run(["chmod", "-R", "a+rX", os.path.dirname(root)], check=True)


class Container:
    """patient in name spaces of its own, as their first process."""

    def __init__(self, root, *options, **popen):
        self.process = subprocess.Popen(
            ["bwrap", *SPACES, "--as-pid-1", "--die-with-parent", "--ro-bind", root, "/", "--proc", "/proc", *options, INSIDE],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **popen)
        said = self.process.stdout.readline()
        assert said == "ready\n", self.process.communicate()[1]
        self.pid = child_named(self.process.pid, os.path.basename(INSIDE))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self.process.communicate()

    def keep_more(self):
        self.process.stdin.write("a")
        self.process.stdin.flush()
        return self.process.stdout.readline()


@unittest.skipUnless(MAY_ATTACH, "needs root's rights, to attach")
class ContainerTest(WithDirectory):
    def setUp(self):
        super().setUp()
        self.need_containers(*SPACES)

    def need_containers(self, *options, **who):
        why = why_no_container(*options, **who)
        if why:
            self.skipTest(f"no container can be made here: {why}")

    def image(self, name="patient"):
        if not os.path.exists(program(name)):
            self.skipTest("musl-gcc was not there when the test programs were built")
        root = self.path(name)
        make_image(root, program(name))
        return root

    def assert_recorded(self, recording, pid):
        """1000 blocks by their function, from the image's own file."""
        self.assertEqual(recording.exit_code, 0, recording.stderr)
        (profile,) = recording.pprofs
        self.assertEqual(profile.pid, pid)
        self.assertAlmostEqual(profile.of("kept_block")["objects"], 1000, delta=100)
        mapped = [profile.profile.string_table[m.filename] for m in profile.profile.mapping]
        self.assertIn(INSIDE, mapped)


class FromTheHost(ContainerTest):
    def record(self, container, end_first=False):
        with Engine() as engine:
            recording = Recording(engine, ["-i", "100", "-p", str(container.pid)]).wait_active()
            self.assertEqual(container.keep_more(), "kept\n")
            if end_first:
                container.__exit__()
            self.assert_recorded(recording.finish(None if end_first else signal.SIGINT), container.pid)

    def test_its_program_goes_on(self):
        with Container(self.image()) as container:
            self.record(container)
            self.assertEqual(container.keep_more(), "kept\n")

    def test_names_are_there_when_the_container_is_gone(self):
        with Container(self.image()) as container:
            self.record(container, end_first=True)

    def test_of_a_user_with_other_ids_inside(self):
        self.need_containers("--unshare-user", *SPACES, user=NOBODY, group=NOBODY)
        with Container(self.image(), "--unshare-user", "--uid", "0", "--gid", "0", user=NOBODY, group=NOBODY, cwd="/") as container:
            self.record(container)

    def test_of_another_c_library(self):
        for name in ("patient_musl_dynamic", "patient_musl_static"):
            with self.subTest(name), Container(self.image(name)) as container:
                self.record(container)

    @unittest.skipUnless(MAY_CATCH, "needs fanotify, to catch programs by name")
    def test_one_that_is_made_meanwhile(self):
        root = self.image()
        with Place() as place:
            recording = Recording(place, ["-i", "100", "-n", os.path.basename(INSIDE)]).wait_active()
            with Container(root) as container:
                self.assertEqual(container.keep_more(), "kept\n")
                recording.finish()
                self.assert_recorded(recording, container.pid)
        self.assertTrue(recording.dumps_of(container.pid)[0].from_startup)

    def test_with_the_library_nobody_needs_rights(self):
        """Attaching is out of the question here: a filter, and a user who may not suspend it."""
        self.need_containers("--unshare-user", *SPACES, user=NOBODY, group=NOBODY)
        if subprocess.run(["test", "-x", HEAP_PROFILE], user=NOBODY).returncode != 0:
            self.skipTest("the build tree is closed to other users")
        root = self.image()
        shutil.copy(PRELOAD, root + "/usr/lib/preload.so")
        with Place() as place:
            os.chown(place.directory, NOBODY, NOBODY)
            recording = Recording(place, ["-i", "100", "-n", os.path.basename(INSIDE)], user=NOBODY, group=NOBODY).wait_active()
            with Container(root, "--unshare-user", "--uid", "0", "--gid", "0", "--bind", place.directory, "/run/heapprofd", "--setenv",
                           "LD_PRELOAD", "/usr/lib/preload.so", user=NOBODY, group=NOBODY, cwd="/",
                           preexec_fn=put_under_a_filter) as container:
                self.assertEqual(container.keep_more(), "kept\n")
                self.assert_recorded(recording.finish(), container.pid)


class Sidecar(ContainerTest):
    """Another container in the target's PID name space, with the tool, a file system of its own, and few rights."""

    def setUp(self):
        super().setUp()
        self.spaces = []  # descriptors of name spaces to join
        self.env = {**os.environ, "HEAPPROFD_DIRECTORY": self.path("service")}

    def space(self, container, kind):
        self.spaces.append(os.open(f"/proc/{container.pid}/ns/{kind}", os.O_RDONLY))
        self.addCleanup(os.close, self.spaces[-1])
        return str(self.spaces[-1])

    def command(self, container, *rights):
        """heap_profile in it, but for its arguments."""
        return ["bwrap", "--pidns", self.space(container, "pid"), "--die-with-parent", "--ro-bind", "/", "/", "--proc", "/proc",
                "--dev", "/dev", "--tmpfs", "/run", "--tmpfs", "/tmp", "--ro-bind", BUILD, BUILD, "--bind", self.directory,
                self.directory, *rights, HEAP_PROFILE]

    def assert_refused(self, container, rights, words, **popen):
        command = self.command(container, *rights)
        for last in (["doctor", "-p", "1"], ["-o", self.path("refused"), "-p", "1"]):
            said = subprocess.run(command + last, pass_fds=self.spaces, capture_output=True, text=True, env=self.env, timeout=60,
                                  **popen)
            self.assertNotEqual(said.returncode, 0)
            self.assertIn(words, said.stdout + said.stderr)

    def test_one_capability_is_enough(self):
        with Container(self.image()) as container, Place() as place:
            command = self.command(container, "--cap-drop", "ALL", "--cap-add", "CAP_SYS_PTRACE")
            out = self.path("out")
            recording = Recording(place, [], command=[*command, "-i", "100", "-o", out, "-p", "1"], pass_fds=self.spaces)
            shutil.rmtree(recording.parent)
            recording.parent = recording.directory = out
            recording.wait_active()
            self.assertEqual(container.keep_more(), "kept\n")
            os.kill(child_named(recording.process.pid, "heap_profile"), signal.SIGINT)
            self.assert_recorded(recording.finish(None), 1)
            self.assertEqual(container.keep_more(), "kept\n")

    def test_what_is_missing_is_told(self):
        root = self.image()
        with Container(root) as container:
            self.assert_refused(container, ["--cap-drop", "CAP_SYS_PTRACE"], "root without CAP_SYS_PTRACE")
        with Container(root, preexec_fn=put_under_a_filter) as container:
            self.assert_refused(container, ["--cap-drop", "CAP_SYS_ADMIN"], "only root with CAP_SYS_ADMIN")
            self.assert_refused(container, [], "a profiler that is under one itself", preexec_fn=put_under_a_filter)

    def test_root_of_a_user_name_space_is_told_so(self):
        self.need_containers("--unshare-user", *SPACES)
        with Container(self.image(), "--unshare-user", preexec_fn=put_under_a_filter) as container:
            self.assert_refused(container, ["--userns", self.space(container, "user")],
                                "root of a user name space may not suspend")

    def test_root_of_a_user_name_space_has_no_rights_outside(self):
        self.need_containers("--unshare-user", *SPACES)
        for command in (["-o", self.path("refused")], ["java"]):
            said = subprocess.run(["unshare", "--user", "--map-root-user", HEAP_PROFILE, *command, "-p", str(os.getpid())],
                                  capture_output=True, text=True, timeout=60)
            self.assertNotEqual(said.returncode, 0)
            self.assertIn("its memory may not be read, not by root of a user name space, whose rights end with it", said.stderr)


if __name__ == "__main__":
    unittest.main()
