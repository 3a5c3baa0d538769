"""Programs that have preloaded the library and that nobody profiles: how they find a service, and what they cost."""

import math
import os
import shutil
import signal
import socket
import subprocess
import unittest

from profile_run import HEAP_PROFILE, program, script
from running_process import MAY_ATTACH
from service_run import HEAPPROFD, PRELOAD, wait_for
from service_test import ROUND, ServiceTest

NOBODY = 65534


class Finding(ServiceTest):
    def listen(self):
        """A socket as systemd makes it: nobody serves it yet."""
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(os.path.join(self.place.directory, "socket"))
        os.chmod(os.path.join(self.place.directory, "socket"), 0o666)
        listener.listen(64)
        return listener

    def activate(self, listener):
        """heapprofd as systemd starts it: LISTEN_PID must be its own."""
        os.set_inheritable(listener.fileno(), True)
        script = f'exec 3<&{listener.fileno()}; LISTEN_FDS=1 LISTEN_PID=$$ exec "$0"'
        self.place.service = subprocess.Popen(["/bin/bash", "-c", script, HEAPPROFD], pass_fds=[listener.fileno()],
                                              env={**os.environ, **self.place.env}, stdin=subprocess.DEVNULL,
                                              stderr=subprocess.PIPE, text=True)

    def check_activation(self, user):
        listener = self.listen()
        patient = self.patient(user=user)  # waits for an answer until the service is there
        self.activate(listener)
        patient.wait_ready().tell("a")
        recording = self.record("-n", "patient", "-i", "1").wait_active()
        patient.tell("a")
        recording.finish()
        self.assertEqual(recording.exit_code, 0, recording.stderr)
        self.assertEqual(recording.pprofs[0].of("kept_block")["space"], ROUND)
        self.assertFalse(recording.dumps_of(patient.pid)[0].from_startup)
        # The socket is systemd's: it stays.
        self.place.service.terminate()
        self.place.service.communicate(timeout=60)
        self.assertTrue(os.path.exists(os.path.join(self.place.directory, "socket")))

    def test_a_program_that_comes_before_its_socket_is_served_can_be_woken(self):
        self.check_activation(None)

    @unittest.skipUnless(MAY_ATTACH, "needs root's rights, to be somebody else")
    def test_a_program_of_another_user_can_be_woken_too_though_it_cannot_make_the_page(self):
        if subprocess.run(["test", "-x", program("patient")], user=NOBODY).returncode != 0:
            self.skipTest("the build tree is closed to other users")
        os.chmod(self.place.directory, 0o755)
        self.check_activation(NOBODY)

    def test_a_program_waits_for_its_session_even_when_there_is_no_place_yet(self):
        shutil.rmtree(self.place.directory)
        patient = self.patient(env={"PERFETTO_HEAPPROFD_BLOCKING_INIT": "1"})
        recording = self.record("-n", "patient", "-i", "1").wait_active()
        patient.wait_ready().tell("a")
        recording.finish()
        self.assertTrue(recording.dumps_of(patient.pid)[0].from_startup)
        self.assertEqual(recording.pprofs[0].of("kept_block")["space"], ROUND)
        self.assertEqual(patient.end(), 0)

    @unittest.skipUnless(shutil.which("redis-server"), "no redis-server here")
    def test_a_server_that_was_started_by_a_link_and_rewrites_its_name_is_found(self):
        self.place.start()
        path = os.path.join(self.place.directory, "redis")
        server = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", path, "--save", ""],
                                  env={**os.environ, **self.place.env, "LD_PRELOAD": PRELOAD},
                                  stdout=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        client = ["redis-cli", "-s", path]
        wait_for(lambda: subprocess.run([*client, "ping"], capture_output=True, text=True).stdout == "PONG\n", "redis")
        recording = self.record("-n", "redis-server", "-i", "64").wait_active()
        for i in range(20):
            subprocess.run([*client, "set", f"key{i}", "x" * 10_000], stdout=subprocess.DEVNULL, check=True)
        recording.finish()
        self.assertGreater(sum(p.total("space") for p in recording.pprofs if p.pid == server.pid), 150_000)

    def test_a_script_is_found_by_its_own_name(self):
        self.place.start()
        path = script(self.place.directory, "nightly.sh",
                      "#!/bin/bash\nkept=$(printf 'x%.0s' {1..200000}); echo ready; read line; kept2=$kept; echo done\n"
                       "read line\n")
        running = self.patient([path]).wait_ready()
        recording = self.record("-n", "nightly.sh").wait_active()
        running.tell("\n")
        recording.finish()
        self.assertEqual({p.pid for p in recording.pprofs}, {running.pid})


class Cost(ServiceTest):
    def becomes_less(self, dear, cheap, factor, rounds=300):
        """Whether allocating costs `dear` less than `factor` times what it costs `cheap`, measured in turns.

        The noise of a busy machine only adds: one quiet moment of each is enough.
        """
        least = {dear: math.inf, cheap: math.inf}
        for _ in range(rounds):
            for patient in least:
                least[patient] = min(least[patient], int(patient.tell("t")))
            if least[dear] < factor * least[cheap]:
                return True
        return False

    def test_a_killed_service_leaves_a_program_as_cheap_as_a_dormant_one(self):
        self.place.start()
        other_name = shutil.copy(program("patient"), os.path.join(self.place.directory, "dormant"))
        dormant = self.patient([other_name]).wait_ready()
        first = self.record("-n", "patient", "-i", "1").wait_active()
        patient = self.patient().wait_ready()
        # Recording every allocation costs many times more than a look at the shared number.
        self.assertFalse(self.becomes_less(patient, dormant, 4, rounds=5))
        self.place.kill()
        patient.tell("t")  # notices
        self.assertTrue(self.becomes_less(patient, dormant, 2))
        first.finish(stop=None)
        self.place.start()
        second = self.record("-p", str(patient.pid), "-i", "1").wait_active()
        patient.tell("a")
        second.finish()
        self.assertEqual(second.pprofs[0].of("kept_block")["space"], ROUND)
        self.assertTrue(self.becomes_less(patient, dormant, 2))


class Background(ServiceTest):
    def setUp(self):
        super().setUp()
        self.place.start()

    def test_whoever_reads_the_process_id_need_not_wait_for_the_recording(self):
        config = os.path.join(self.place.directory, "config")
        trace = os.path.join(self.place.directory, "trace")
        for option in ("-d", "-D", "--background", "--background-wait"):
            with self.subTest(option):
                out = subprocess.run(
                    ["/bin/sh", "-c", f"heap_profile -n patient -i 1 --print-config > {config}; "
                     f"pid=$(perfetto -c {config} --txt -o {trace} {option} 2>&1); echo $pid"],
                    env={**os.environ, **self.place.env,
                         "PATH": os.path.dirname(HEAPPROFD) + ":" + os.environ["PATH"]},
                    capture_output=True, text=True, timeout=60, check=True).stdout
                os.kill(int(out), signal.SIGINT)
                wait_for(lambda: not os.path.exists(f"/proc/{int(out)}"), "the recorder stays")
                self.assertEqual(os.stat(trace).st_mode & 0o777, 0o600)

    def test_a_service_that_cannot_start_is_not_waited_for(self):
        result = subprocess.run([HEAP_PROFILE, "-n", "x", "-o", os.path.join(self.place.directory, "out")],
                                env={**os.environ, "HEAPPROFD_DIRECTORY": "/proc/nonexistent"}, capture_output=True,
                                text=True)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, "cannot start .*/heapprofd: it has ended with exit code 1; run it by hand to see why")
        self.assertFalse(os.path.exists(os.path.join(self.place.directory, "out")))

    def test_a_recording_that_cannot_begin_says_so_at_once(self):
        config = os.path.join(self.place.directory, "config")
        with open(config, "w") as file:
            file.write(subprocess.run([HEAP_PROFILE, "--print-config", "-n", "x"], capture_output=True,
                                      text=True, check=True).stdout)
        result = subprocess.run([HEAP_PROFILE, "record", "-c", config, "-d", "--no-start",
                                 "-o", os.path.join(self.place.directory, "out")],
                                env={**os.environ, "HEAPPROFD_DIRECTORY": "/nonexistent"}, capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("no heapprofd runs", result.stderr)


class Marks(ServiceTest):
    def test_a_name_may_be_any_text(self):
        self.place.start()
        recording = self.record("-n", "patient", "-i", "1").wait_active()
        patient = self.patient().wait_ready()
        for name in (b"\xff\xfe \n\x01", b"x" * 100_000, "ünïcode".encode()):
            mark = subprocess.run([HEAP_PROFILE.encode(), b"mark", name], env={**os.environ, **self.place.env},
                                  capture_output=True)
            self.assertEqual(mark.returncode, 0, mark.stderr)
        recording.finish()
        labels = [dump.label for dump in recording.dumps_of(patient.pid)]
        self.assertEqual(labels, ["\ufffd\ufffd __", "x" * 255, "ünïcode", ""])

    def test_who_has_ended_before_does_not_get_the_name(self):
        self.place.start()
        recording = self.record("-n", "patient", "-i", "1").wait_active()
        gone = self.patient().wait_ready()
        self.assertEqual(gone.end(), 0)
        patient = self.patient().wait_ready()
        subprocess.run([HEAP_PROFILE, "mark", "two"], env={**os.environ, **self.place.env}, check=True, capture_output=True)
        recording.finish()
        self.assertEqual([dump.label for dump in recording.dumps_of(gone.pid)], [""])
        self.assertEqual([dump.label for dump in recording.dumps_of(patient.pid)], ["two", ""])

    def test_an_option_is_no_name(self):
        for argument, code, words in (("--help", 0, "usage: heap_profile mark NAME"), ("--quiet", 2, "cannot use option --quiet: there is none of this name")):
            mark = subprocess.run([HEAP_PROFILE, "mark", argument], capture_output=True, text=True)
            self.assertEqual(mark.returncode, code)
            self.assertIn(words, mark.stdout + mark.stderr)

    def test_a_broken_session_variable_is_no_reason_to_crash(self):
        mark = subprocess.run([HEAP_PROFILE, "mark", "x"], env={**os.environ, **self.place.env, "HEAPPROFD_SESSION": "nonsense"},
                              capture_output=True, text=True)
        self.assertEqual(mark.returncode, 1, mark.stderr)
        self.assertIn("nothing", mark.stderr)


if __name__ == "__main__":
    unittest.main()
