"""What the users of a machine can do to each other and to root by way of a service: nothing."""

import array
import glob
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

import handshake
from profile_run import HEAP_PROFILE, Pprof, program
from running_process import MAY_ATTACH, changed_code_bytes
from service_run import PRELOAD, full_pipe, wait_for
from service_test import ROUND, ServiceTest

ALICE, MALLORY = 61001, 61002


def command_line(pid):
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read()


def is_traced(pid):
    with open(f"/proc/{pid}/status") as status:
        return "TracerPid:\t0\n" not in status.read()


class Impostor:
    """Listens where a service is expected, as another user, and keeps what it is given."""

    def __init__(self, directory, user):
        self.path = os.path.join(directory, "socket")
        read_end, write_end = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(read_end)
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
            self._listen(write_end)
            os._exit(0)
        os.close(write_end)
        self.report = os.fdopen(read_end, "rb")
        assert self.report.readline() == b"listening\n"

    def _listen(self, out):
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self.path)
            os.chmod(self.path, 0o777)
            listener.listen()
            os.write(out, b"listening\n")
            connection, _ = listener.accept()
            data, control, _, _ = connection.recvmsg(65536, socket.CMSG_SPACE(64))
            os.write(out, b"%d bytes, %d descriptors\n" % (len(data), len(control) // array.array("i").itemsize))

    def end(self):
        """What it was given."""
        os.kill(self.pid, signal.SIGTERM)
        os.waitpid(self.pid, 0)
        with self.report:
            return self.report.read().decode()


@unittest.skipUnless(MAY_ATTACH, "needs root's rights, to be somebody else")
class Impostors(unittest.TestCase):
    def check(self, user):
        with tempfile.TemporaryDirectory(prefix="hpd_") as directory:
            os.chown(directory, MALLORY, MALLORY)
            os.chmod(directory, 0o755)
            impostor = Impostor(directory, MALLORY)
            with tempfile.TemporaryDirectory() as out:
                os.chown(out, user, user)
                result = subprocess.run([HEAP_PROFILE, "-p", "1", "-d", "10", "-o", os.path.join(out, "out")], user=user,
                                        env={**os.environ, "HEAPPROFD_DIRECTORY": directory}, capture_output=True,
                                        text=True, timeout=60)
            given = impostor.end()
        self.assertEqual(given.replace("0 bytes, 0 descriptors\n", ""), "")
        self.assertEqual(result.returncode, 1)
        self.assertIn("other users can alter that place" if user == 0 else f"it is run by user {MALLORY}", result.stderr)

    def test_root_gives_them_nothing(self):
        self.check(0)

    def test_a_user_gives_them_nothing(self):
        self.check(ALICE)

    def test_marks_are_not_for_them(self):
        with tempfile.TemporaryDirectory(prefix="hpd_") as directory:
            os.chmod(directory, 0o777)
            impostor = Impostor(directory, MALLORY)
            result = subprocess.run([HEAP_PROFILE, "mark", "secret"], capture_output=True, text=True, timeout=60,
                                    env={**os.environ, "HEAPPROFD_DIRECTORY": directory})
            self.assertEqual(impostor.end(), "")
        self.assertEqual(result.returncode, 1)


@unittest.skipUnless(MAY_ATTACH, "needs root's rights, to be somebody else")
class Users(ServiceTest):
    def setUp(self):
        super().setUp()
        os.chmod(self.place.directory, 0o755)
        self.place.start()
        if subprocess.run(["test", "-x", program("patient")], user=ALICE).returncode != 0:
            self.skipTest("the build tree is closed to other users")

    def test_root_records_everybody(self):
        recording = self.record("-n", "patient", "-i", "1").wait_active()
        patients = [self.patient(user=user, group=user, extra_groups=[]).wait_ready() for user in (ALICE, MALLORY, 0)]
        for patient in patients:
            patient.tell("a")
        recording.finish()
        self.assertEqual(recording.exit_code, 0, recording.stderr)
        self.assertEqual({profile.pid: profile.of("kept_block")["space"] for profile in recording.pprofs},
                         {patient.pid: ROUND for patient in patients})

    def test_root_serves_nobody_elses_commands_and_says_what_to_do(self):
        """Each with the environment that names root's service."""
        with tempfile.TemporaryDirectory() as directory:
            os.chmod(directory, 0o777)
            for command in (["-n", "patient", "-d", "10", "-o", os.path.join(directory, "out")], ["mark", "now"]):
                result = subprocess.run([HEAP_PROFILE, *command], env={**os.environ, **self.place.env}, user=ALICE, group=ALICE,
                                        capture_output=True, text=True, timeout=60, check=False)
                self.assertEqual(result.returncode, 1)
                self.assertIn("this service records for root alone; run heap_profile as root, or without HEAPPROFD_DIRECTORY, so that "
                              "a service of your own records your programs", result.stderr)
            self.assertEqual(os.listdir(directory), [])

    def test_a_program_with_more_rights_is_not_taken_for_whoever_has_connected(self):
        """He connects, becomes su, and somebody else says Hello: its address space would be in the answer. Whoever keeps
        his rights has the answer that he asks for."""
        for file in ("/usr/bin/su", "/usr/bin/cat"):
            recording = self.record("-n", "su", "--all-heaps").wait_active()
            ours, theirs = socket.socketpair()
            pid = os.fork()
            if pid == 0:
                os.setgroups([])
                os.setresgid(MALLORY, MALLORY, MALLORY)
                os.setresuid(MALLORY, MALLORY, MALLORY)
                connection = socket.socket(socket.AF_UNIX)
                connection.connect(os.path.join(self.place.directory, "socket"))
                socket.send_fds(theirs, [b"x"], [connection.fileno()])
                null = os.open("/dev/null", os.O_WRONLY)
                read_end, write_end = os.pipe()  # it waits for a password
                os.set_inheritable(write_end, True)
                os.dup2(read_end, 0)
                os.dup2(null, 1)
                os.dup2(null, 2)
                os.execv(file, ["su", "-"])
            try:
                _, fds, _, _ = socket.recv_fds(ours, 1, 1)
                # The kernel tells of the file first, of the name a moment later.
                wait_for(lambda pid=pid, file=file: os.readlink(f"/proc/{pid}/exe") == os.path.realpath(file)
                         and command_line(pid).startswith(b"su\0"), "no su")
                with socket.socket(fileno=fds[0]) as connection:
                    connection.settimeout(60)
                    connection.sendall(handshake.hello(handshake.STARTUP))
                    answer, given, _, _ = socket.recv_fds(connection, handshake.WELCOME_SIZE, 4)
            finally:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            for fd in given:
                os.close(fd)
            self.assertEqual((handshake.status_of(answer), len(given)),
                             (handshake.DECLINE, 0) if file == "/usr/bin/su" else (handshake.PROFILE, 2))
            recording.finish()


@unittest.skipUnless(MAY_ATTACH, "needs root's rights, to be somebody else")
class OwnServices(ServiceTest):
    """Of an ordinary user."""

    def setUp(self):
        super().setUp()
        if subprocess.run(["test", "-x", program("patient")], user=ALICE).returncode != 0:
            self.skipTest("the build tree is closed to other users")

    def test_a_user_records_what_is_hers(self):
        self.place.start(user=ALICE)
        recording = self.record("-n", "patient", "-i", "1", user=ALICE, group=ALICE, extra_groups=[]).wait_active()
        roots, mallorys, own = (self.patient(user=user, group=user, extra_groups=[]).wait_ready() for user in (0, MALLORY, ALICE))
        for patient in (roots, mallorys, own):
            patient.tell("a")
        recording.finish()
        self.assertEqual(recording.exit_code, 0, recording.stderr)
        self.assertEqual([profile.pid for profile in recording.pprofs], [own.pid])

    def test_new_programs_of_her_names_are_attached_to_when_they_are_seen(self):
        self.place.start(user=ALICE)
        recording = self.record("-n", "patient", "-i", "1", user=ALICE, group=ALICE, extra_groups=[]).wait_active()
        patient = self.patient(env={"LD_PRELOAD": ""}, user=ALICE, group=ALICE, extra_groups=[]).wait_ready()
        wait_for(lambda: changed_code_bytes(patient.pid) and not is_traced(patient.pid), "its hooks are in")
        patient.tell("a")
        recording.finish()
        self.assertEqual(recording.exit_code, 0, recording.stderr)
        self.assertEqual(recording.pprofs[0].of("kept_block")["space"], ROUND)
        self.assertFalse(recording.dumps_of(patient.pid)[0].from_startup)
        self.assertIn("cannot watch for new processes: this needs root (CAP_SYS_ADMIN, CAP_SYS_PTRACE); those of your own that are "
                      "seen running are attached to", recording.stderr)

    def test_her_heap_profile_starts_one(self):
        os.chown(self.place.directory, ALICE, ALICE)
        recording = self.record("-n", "patient", "-i", "1", user=ALICE, group=ALICE, extra_groups=[]).wait_active()
        patient = self.patient(user=ALICE, group=ALICE, extra_groups=[]).wait_ready()
        patient.tell("a")
        recording.finish()
        self.assertEqual(recording.pprofs[0].of("kept_block")["space"], ROUND)
        wait_for(lambda: not os.path.exists(os.path.join(self.place.directory, "socket")), "the service stays")


# What makes somebody user 0 without root's rights.
WITHOUT_CAPABILITIES = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
ROOTS = {
    "without capabilities": WITHOUT_CAPABILITIES,
    "of a user name space": ["unshare", "--user", "--map-root-user"],
    "of a container": ["unshare", "--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "--mount-proc",
                       *WITHOUT_CAPABILITIES],
}
# Records a program; the arguments are heap_profile's.
OWN_SERVICE = """
"$0" "$@" 2> "$LOG" & recorder=$!
until grep -q active "$LOG"; do kill -0 $recorder || break; done
LD_PRELOAD="$LIBRARY" "$PATIENT" 1 > /dev/null
kill -TERM $recorder
wait $recorder
"""


@unittest.skipUnless(MAY_ATTACH, "needs root's rights, to give them up")
class RootWithoutRights(ServiceTest):
    def setUp(self):
        super().setUp()
        os.chmod(self.place.directory, 0o755)
        self.place.start()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.out = os.path.join(directory.name, "out")

    def for_each(self, check):
        """With the beginning of a command line of each kind that there can be here."""
        for name, become in ROOTS.items():
            with self.subTest(name):
                if subprocess.run([*become, "true"], capture_output=True, check=False).returncode != 0:
                    self.skipTest("this machine does not allow it")
                check(become)

    def run_as(self, become, *arguments, **env):
        return subprocess.run([*become, HEAP_PROFILE, *arguments], env={**os.environ, **self.place.env, **env},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)

    def test_it_has_nobody_recorded_by_roots_service(self):
        if subprocess.run(["test", "-x", program("patient")], user=ALICE).returncode != 0:
            self.skipTest("the build tree is closed to other users")
        patient = self.patient(user=ALICE, group=ALICE, extra_groups=[]).wait_ready()

        def check(become):
            # In its own PID name space it knows no number.
            for who in (["-p", str(patient.pid)], ["-n", "patient"]):
                result = self.run_as(become, "--no-start", *who, "-d", "10", "-o", self.out)
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertIn("root's rights where the service runs (CAP_SYS_PTRACE", result.stderr)
                self.assertFalse(os.path.exists(self.out))
            self.assertEqual(self.run_as(become, "mark", "now").returncode, 1)

        self.for_each(check)
        self.assertEqual(self.place.parts(), {self.place.service.pid})

    def test_it_records_what_it_starts_itself(self):
        self.for_each(lambda become: self.check_out(
            self.run_as(become, "-i", "1", "-o", self.out, "--", program("patient"), "1")))

    def test_a_service_of_its_own_records_with_the_rights_that_it_has(self):
        """As it is told to do."""
        def check(become):
            with tempfile.TemporaryDirectory() as own:
                self.check_out(self.run_as([*become, "sh", "-c", OWN_SERVICE], "-n", "patient", "-i", "1", "-o", self.out,
                                           HEAPPROFD_DIRECTORY=os.path.join(own, "service"), LOG=os.path.join(own, "log"), LIBRARY=PRELOAD,
                                           PATIENT=program("patient")))

        self.for_each(check)

    def check_out(self, result):
        self.assertEqual(result.returncode, 0, result.stderr)
        profile, = glob.glob(os.path.join(self.out, "heap_dump.*"))
        self.assertEqual(Pprof(profile).of("kept_block")["alloc_space"], ROUND)
        shutil.rmtree(self.out)

    def test_its_programs_are_roots_to_record(self):
        def check(become):
            recording = self.record("-n", "patient", "-i", "1").wait_active()
            patient = self.patient([*become, program("patient")]).wait_ready()
            patient.tell("a")
            recording.finish()
            self.assertEqual(recording.exit_code, 0, recording.stderr)
            self.assertEqual(recording.pprofs[0].of("kept_block")["space"], ROUND)
            patient.end()

        self.for_each(check)


@unittest.skipUnless(MAY_ATTACH, "needs root's rights, to be somebody else")
class Finishers(ServiceTest):
    def test_what_nobody_reads_does_not_keep_the_service(self):
        """A recording's owner leaves its standard error unread, in a pipe that is full."""
        self.place.start(user=MALLORY)
        read_end, write_end = full_pipe()
        with tempfile.TemporaryDirectory() as directory:
            os.chown(directory, MALLORY, MALLORY)
            tool = subprocess.Popen([HEAP_PROFILE, "-n", "patient", "-o", os.path.join(directory, "out")],
                                    stdin=subprocess.DEVNULL, stderr=write_end, user=MALLORY,
                                    env={**os.environ, **self.place.env})
            wait_for(lambda: os.path.exists(os.path.join(directory, "out/raw-trace")), "no trace")
            tool.kill()
            tool.wait()
            self.place.service.terminate()
            self.place.service.communicate(timeout=60)  # before: for ever
        os.close(read_end)
        os.close(write_end)


if __name__ == "__main__":
    unittest.main()
