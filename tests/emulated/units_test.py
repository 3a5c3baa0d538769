"""In a machine with systemd, as root: the packages and their units, as the users of a machine meet them. systemd_machine.py
starts the classes one after the other, each in a process of its own; those about removal come last."""

import glob
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time
import unittest

ALICE = "alice"
AS_ALICE = {"user": ALICE, "group": ALICE, "extra_groups": []}
SOCKET, SERVICE = "heapprofd.socket", "heapprofd.service"
CGROUP = "/sys/fs/cgroup/system.slice/heapprofd.service"
WORKER = "/usr/local/bin/worker"  # perl under a name that nothing else of the machine has
PRELOAD = "/usr/lib/heapprofd/libheapprofd_preload.so"
SCRIPT = "/usr/local/lib/worker.pl"
# Keeps a megabyte for each line that it reads.
TEXT = '$| = 1; print "ready\\n"; while (<STDIN>) { push @kept, "x" x (1000 * (1000 + @kept)); print "kept\\n"; }'
PATIENCE_S = 180
# The hardening of careful services: what they forbid is what attaching to them meets.
HARDENED = ["DynamicUser=yes", "ProtectSystem=strict", "ProtectHome=yes", "PrivateTmp=yes", "PrivateDevices=yes", "PrivateNetwork=yes",
            "PrivateUsers=yes", "ProtectProc=invisible", "ProcSubset=pid", "ProtectKernelTunables=yes", "RestrictNamespaces=yes",
            "MemoryDenyWriteExecute=yes", "LockPersonality=yes", "SystemCallFilter=@system-service", "SystemCallArchitectures=native",
            "RestrictAddressFamilies=AF_UNIX", "CapabilityBoundingSet=", "NoNewPrivileges=yes"]


def output_of(*command, code=0, **options):
    result = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, **options)
    assert code is None or result.returncode == code, (command, result.returncode, result.stdout, result.stderr)
    return result.stdout + result.stderr


def wait_for(condition, what):
    end = time.monotonic() + PATIENCE_S
    while not (value := condition()):
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.05)
    return value


def install(folder="/packages"):
    output_of("dpkg", "-i", *glob.glob(folder + "/*.deb"))


def is_active(unit):
    return output_of("systemctl", "is-active", unit, code=None).strip()


def setUpModule():
    os.environ["XDG_RUNTIME_DIR"] = ""
    if not os.path.exists(WORKER):
        output_of("cp", "/usr/bin/perl", WORKER)
        pathlib.Path(SCRIPT).write_text(TEXT)
        output_of("useradd", "--create-home", ALICE)
    if not os.path.exists("/usr/bin/heapprofd"):
        install()


class Worker:
    """A program that allocates when it is told to."""

    def __init__(self, *wrapper, env=None, **who):
        self.process = subprocess.Popen([*wrapper, WORKER, SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, **(env or {})}, **who)
        line = self.process.stdout.readline()
        assert line == "ready\n", line
        self.pid = self.process.pid

    def keep(self):
        self.process.stdin.write("more\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait(timeout=PATIENCE_S)


class Recording:
    """A heap_profile that has begun to record."""

    def __init__(self, *options, env=None, **who):
        self.parent = tempfile.mkdtemp(prefix="profile_")
        if who:
            output_of("chown", who["user"], self.parent)
        self.directory = os.path.join(self.parent, "out")
        self.process = subprocess.Popen(["heap_profile", *options, "-o", self.directory], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **(env or {})}, **who)
        self.said = ""
        while "Profiling active" not in self.said:
            line = self.process.stderr.readline()
            assert line, self.said + self.process.stdout.read()
            self.said += line

    def wait(self):
        stdout, stderr = self.process.communicate(timeout=PATIENCE_S)
        self.said += stderr + stdout
        self.pids = {int(os.path.basename(path).split(".")[2]) for path in glob.glob(self.directory + "/heap_dump.*.pb.gz")}
        return self.process.returncode

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        return self.wait()

    def callers(self):
        return output_of("heap_profile", "show", self.directory + "/raw-trace")


class UnitsTest(unittest.TestCase):
    def setUp(self):
        output_of("systemctl", "reset-failed")
        output_of("systemctl", "enable", "--now", SOCKET)

    def worker(self, *wrapper, **options):
        worker = Worker(*wrapper, **options)
        self.addCleanup(worker.end)
        return worker

    def assert_records(self, *options, workers, starts=(), **who):
        """Everything that the workers, and those that are started meanwhile, then keep is in the profile, with names."""
        recording = Recording(*options, **who)
        workers = [*workers, *(start() for start in starts)]
        for worker in workers:
            self.assertEqual(worker.keep(), "kept\n")
        self.assertEqual(recording.stop(), 0, recording.said)
        self.assertEqual(recording.pids, {worker.pid for worker in workers}, recording.said)
        self.assertIn("Perl_", recording.callers())
        # Only root watches for new processes; those with the library come by themselves.
        self.assertNotRegex(recording.said, r"(?m)^(!|heap_profile: cannot (?!watch for new processes))")
        return recording


class Installed(UnitsTest):
    """What is there after dpkg -i."""

    def setUp(self):
        pass

    def test_nothing_is_enabled_or_runs_before_somebody_asks(self):
        for unit in (SOCKET, SERVICE):
            self.assertIn("disabled", output_of("systemctl", "is-enabled", unit, code=None))
            self.assertEqual(is_active(unit), "inactive")
        output_of("systemctl", "enable", "--now", SOCKET)
        self.assertEqual((is_active(SOCKET), is_active(SERVICE)), ("active", "inactive"))
        self.assertIn("Tells", output_of("heap_profile", "-h"))

    def test_systemd_has_nothing_to_say_against_the_units(self):
        self.assertEqual(output_of("systemd-analyze", "verify", "--man=no", SOCKET, SERVICE), "")
        self.assertEqual(output_of("systemd-analyze", "verify", "--man=no", "--user", "/usr/lib/systemd/user/heapprofd.socket",
                                   "/usr/lib/systemd/user/heapprofd.service", env={**os.environ, "XDG_RUNTIME_DIR": "/run"}), "")

    def test_what_is_exposed_is_what_the_page_says(self):
        found = json.loads(subprocess.run(["systemd-analyze", "security", "--json=short", SERVICE], capture_output=True, text=True,
                                          check=True).stdout)
        exposed = {row["name"] for row in found if row["exposure"] and float(row["exposure"]) > 0}
        section = pathlib.Path("security.md").read_text().split("## Hardening by systemd")[1].split("\n## ")[0]
        told = {name for line in section.splitlines() if line.startswith("| `") for name in re.findall(r"`([^`]+=[^`]*)`", line)}
        self.assertEqual(exposed, told)


class OfEverybody(UnitsTest):
    """Root's service, by its socket."""

    def test_root_records_everybody_by_name(self):
        workers = [self.worker(), self.worker(**AS_ALICE), self.worker("setpriv", "--no-new-privs")]
        self.assert_records("-n", "worker", workers=workers,
                            starts=[self.worker, lambda: self.worker(**AS_ALICE)])
        self.assertEqual(is_active(SERVICE), "active")

    def test_root_records_a_hardened_service(self):
        name = "hardened.service"
        worker = self.worker("systemd-run", "--quiet", "--pipe", "--wait", "--collect", "--unit", name,
                             *(f"--property={setting}" for setting in HARDENED))
        worker.pid = int(output_of("systemctl", "show", "-p", "MainPID", "--value", name))
        self.assert_records("-p", str(worker.pid), workers=[worker])

    def test_a_program_of_a_user_that_lies_dormant_is_woken(self):
        worker = self.worker(**AS_ALICE, env={"LD_PRELOAD": PRELOAD})
        worker.keep()
        self.assert_records("-n", "worker", workers=[worker])

    def test_a_user_beside_it_records_what_is_hers_by_a_service_of_her_own(self):
        hers, roots = self.worker(**AS_ALICE), self.worker()
        recording = Recording("-n", "worker", **AS_ALICE)
        late = self.worker(**AS_ALICE, env={"LD_PRELOAD": PRELOAD})
        for worker in (hers, roots, late):
            worker.keep()
        self.assertEqual(recording.stop(), 0, recording.said)
        self.assertEqual(recording.pids, {hers.pid, late.pid}, recording.said)
        self.assertIn("Perl_", recording.callers())

    def test_events_of_the_kernel(self):
        config = "/tmp/events.config"
        pathlib.Path(config).write_text(
            'data_sources { config { name: "linux.ftrace" ftrace_config { ftrace_events: "sched/sched_process_exec" } } }\n'
            'data_sources { config { name: "android.heapprofd" heapprofd_config { process_cmdline: "worker" sampling_interval_bytes: 4096 } } }\n')
        worker = self.worker()
        recording = Recording("record", "-c", config)
        worker.keep()
        output_of("true")
        self.assertEqual(recording.stop(), 0, recording.said)
        self.assertIn("sched_process_exec", output_of("traceconv", "text", recording.directory + "/raw-trace"))


class Life(UnitsTest):
    """Of a service in the middle of recordings."""

    def assert_survived(self, act):
        """What was recorded is kept, programs go on, and are recorded again by what comes next."""
        workers = [self.worker(), self.worker(**AS_ALICE)]
        recordings = [Recording("-p", str(worker.pid)) for worker in workers]
        for worker in workers:
            worker.keep()
        act()
        codes = [recording.wait() for recording in recordings]
        for worker in workers:
            self.assertEqual(worker.keep(), "kept\n")
        output_of("systemctl", "start", SOCKET)
        for worker in workers:
            self.assert_records("-p", str(worker.pid), workers=[worker])
        return codes, recordings

    def assert_ended_in_order(self, act):
        codes, recordings = self.assert_survived(act)
        for code, recording in zip(codes, recordings):
            self.assertEqual((code, len(recording.pids)), (0, 1), recording.said)
            self.assertIn("Perl_", recording.callers())

    def test_it_is_stopped(self):
        self.assert_ended_in_order(lambda: output_of("systemctl", "stop", SOCKET, SERVICE))

    def test_it_is_restarted(self):
        self.assert_ended_in_order(lambda: output_of("systemctl", "restart", SERVICE))
        self.assertEqual((is_active(SOCKET), is_active(SERVICE)), ("active", "active"))

    def test_it_is_killed(self):
        codes, _ = self.assert_survived(lambda: output_of("systemctl", "kill", "--signal=KILL", SERVICE))
        self.assertNotIn(0, codes)
        wait_for(lambda: is_active(SERVICE) == "active", "started again")


class OfOneUser(UnitsTest):
    """The units that a user enables for herself."""

    def setUp(self):
        super().setUp()
        output_of("systemctl", "disable", "--now", SOCKET, SERVICE)
        self.uid = pathlib.Path("/home", ALICE).stat().st_uid
        output_of("loginctl", "enable-linger", ALICE)
        wait_for(lambda: is_active(f"user@{self.uid}.service") == "active", "manager of the user")
        self.env = {"XDG_RUNTIME_DIR": f"/run/user/{self.uid}", "HOME": f"/home/{ALICE}"}

    def systemctl(self, *words):
        return output_of("systemctl", "--user", *words, **AS_ALICE, env={**os.environ, **self.env})

    def test_her_own_service(self):
        self.systemctl("enable", "--now", SOCKET)
        self.addCleanup(self.systemctl, "disable", "--now", SOCKET, SERVICE)
        who = {**AS_ALICE, "env": self.env}
        dormant = self.worker(**AS_ALICE, env={**self.env, "LD_PRELOAD": PRELOAD})
        running = self.worker(**who)
        for _ in range(2):
            self.assert_records("-n", "worker", workers=[dormant, running], starts=[
                lambda: self.worker(**AS_ALICE, env={**self.env, "LD_PRELOAD": PRELOAD})], **who)
            self.assertIn("active", self.systemctl("is-active", SERVICE))
            self.systemctl("stop", SERVICE)
        self.assertNotRegex(output_of("journalctl", "-b", "-o", "cat", f"_SYSTEMD_USER_UNIT={SERVICE}"), "cannot|denied|not permitted")


class Upgrade(UnitsTest):
    def test_in_the_middle_of_a_recording(self):
        Life.assert_ended_in_order(self, lambda: install("/packages/next"))
        self.assertEqual((is_active(SOCKET), is_active(SERVICE)), ("active", "active"))
        self.assertIn("+next", output_of("dpkg-query", "-W", "heapprofd-daemon"))
        pid = output_of("systemctl", "show", "-p", "MainPID", "--value", SERVICE).strip()
        self.assertIn(b"VERSION=next", pathlib.Path("/proc", pid, "environ").read_bytes())  # its unit is the new one, too

    assert_survived = Life.assert_survived


class Removal(UnitsTest):
    def test_a_the_journal_has_complaints_only_of_what_was_killed(self):
        said = output_of("journalctl", "-b", "-o", "cat", "-u", SERVICE, "-u", SOCKET)
        self.assertNotRegex(said, "cannot|denied|not permitted|Permission")
        self.assertNotIn("type=1326", output_of("journalctl", "-b", "-k", "-o", "cat"))  # killed by a seccomp filter

    def test_b_in_the_middle_of_a_recording(self):
        worker = self.worker()
        recording = Recording("-p", str(worker.pid))
        worker.keep()
        output_of("dpkg", "-r", "heapprofd-daemon", "heapprofd")
        self.assertEqual(recording.wait(), 0, recording.said)
        self.assertEqual(worker.keep(), "kept\n")
        for unit in (SOCKET, SERVICE):
            self.assertEqual(output_of("systemctl", "show", "-p", "LoadState", "--value", unit).strip(), "not-found")
        self.assertFalse(os.path.exists("/run/heapprofd/socket"))
        self.assertEqual(output_of("systemctl", "list-units", "--failed", "--no-legend", "heapprofd*"), "")
        output_of("dpkg", "-P", "heapprofd-daemon", "heapprofd")
        self.assertEqual(glob.glob("/etc/systemd/**/heapprofd*", recursive=True) + glob.glob("/var/lib/systemd/**/heapprofd*", recursive=True), [])
        self.assertFalse(os.path.exists(CGROUP))  # none of its processes is left


if __name__ == "__main__":
    unittest.main()
