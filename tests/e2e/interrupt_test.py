"""Ctrl-C at a terminal, and a program that does not care."""

import contextlib
import os
import pty
import select
import signal
import subprocess
import tempfile
import termios
import time
import unittest

from profile_run import HEAP_PROFILE, Started, program, run
from service_run import Place, wait_for
from service_test import ServiceTest

DEADLINE_S = 60


class Terminal:
    """A terminal of 30 rows whose foreground program is a command."""

    def __init__(self, command, columns=80):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            termios.tcsetwinsize(0, (30, columns))
            os.execve(command[0], command, {**os.environ, "TERM": "xterm"})
        self.text = ""

    def wait_for(self, words):
        """Reads until the words have come; gives all that was read."""
        return self.wait_until(lambda text: words in text, repr(words))

    def wait_until(self, is_there, what):
        end = time.monotonic() + DEADLINE_S
        while not is_there(self.text):
            if time.monotonic() > end:
                raise TimeoutError(f"no {what} in {self.text!r}")
            if not select.select([self.fd], [], [], 1)[0]:
                continue
            try:
                self.text += os.read(self.fd, 4096).decode(errors="replace")
            except OSError:  # the other side has closed
                if not is_there(self.text):
                    raise TimeoutError(f"no {what} in {self.text!r}") from None
        return self.text

    def press(self, key):
        os.write(self.fd, key)

    def exit_code(self):
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def close(self):
        os.close(self.fd)


class Interrupt(unittest.TestCase):
    def test_ctrl_c_at_a_terminal_ends_the_program_and_shows_its_profile(self):
        with tempfile.TemporaryDirectory() as directory:
            terminal = Terminal([HEAP_PROFILE, "-i", "1", "-o", directory, "--", program("exits"), "wait"])
            terminal.wait_for("waiting")
            terminal.wait_for("Ctrl-C to stop")  # the status line
            terminal.press(b"\x03")
            text = terminal.wait_for("pprof  ")
            self.assertIn("kept_block", text)
            self.assertEqual(terminal.exit_code(), 128 + signal.SIGINT)
            terminal.close()

    def test_an_interrupt_of_the_whole_group_keeps_the_profile(self):
        started = Started([program("exits"), "wait"], ["-i", "1"], start_new_session=True)
        self.assertEqual(started.process.stdout.readline(), "waiting\n")
        os.killpg(started.process.pid, signal.SIGINT)
        result = started.finish()
        self.assertEqual(result.exit_code, 128 + signal.SIGINT, result.stderr)
        self.assertEqual(result.main.of("kept_block")["space"], 1000 * 1000)

    def test_a_program_that_ignores_interrupts_runs_on_when_the_recording_is_stopped(self):
        script = ("import signal, sys\n"
                  "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
                  "kept = bytearray(3_000_000)\n"
                  "print('ready', flush=True)\n"
                  "sys.stdin.readline()\n"
                  "more = [bytearray(100_000) for _ in range(200)]\n"
                  "print('still here', len(more), flush=True)\n")
        with tempfile.TemporaryDirectory() as directory:
            process = subprocess.Popen([HEAP_PROFILE, "-o", directory, "--", "/usr/bin/python3", "-c", script],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       text=True)
            self.assertEqual(process.stdout.readline(), "ready\n")
            end = time.monotonic() + DEADLINE_S
            while process.poll() is None:  # one signal may come before the first was read
                self.assertLess(time.monotonic(), end, "heap_profile does not stop")
                process.send_signal(signal.SIGINT)
                select.select([], [], [], 0.05)
            self.assertEqual(process.returncode, 128 + signal.SIGINT)
            self.assertIn("raw-trace", os.listdir(directory))
            self.assertTrue(any(name.startswith("heap_dump.") for name in os.listdir(directory)))
            out, _ = process.communicate("\n", timeout=DEADLINE_S)  # until the program closes its end
            self.assertEqual(out, "still here 200\n")

    def test_one_signal_ends_the_recording_of_a_program_that_was_started_to_ignore_it(self):
        """As a shell without job control starts what it puts into its background."""
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number.name), tempfile.TemporaryDirectory() as directory:
                process = subprocess.Popen([HEAP_PROFILE, "-o", directory, "--", program("patient"), "1"],
                                           preexec_fn=lambda: signal.signal(number, signal.SIG_IGN),
                                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                self.assertTrue(process.stdout.readline())
                process.send_signal(number)
                self.assertEqual(process.wait(DEADLINE_S), 128 + signal.SIGINT)
                _, stderr = process.communicate("\n", timeout=DEADLINE_S)  # the program ends now
                self.assertRegex(stderr, r"patient \(pid \d+\) runs on unprofiled")
                self.assertIn("raw-trace", os.listdir(directory))

    def test_a_dump_that_is_asked_for_too_early_is_no_end(self):
        def ask():
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
            os.kill(os.getpid(), signal.SIGUSR1)

        with Place() as place:
            done = subprocess.run([HEAP_PROFILE, "--no-start", "--no-report", "-o", os.path.join(place.directory, "out"), "-n", "x"], preexec_fn=ask,
                                  capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=DEADLINE_S,
                                  env={**os.environ, **place.env})
        self.assertEqual(done.returncode, 1, done.stderr)

    def test_a_signal_that_kills_the_program_is_its_exit_code(self):
        result = run(["/bin/sh", "-c", "kill -TERM $$"])
        self.assertEqual(result.exit_code, 128 + signal.SIGTERM)


class SilentService(ServiceTest):
    """A way out of a service that does not answer."""

    def setUp(self):
        super().setUp()
        self.place.start()

    def stop(self):
        self.place.service.send_signal(signal.SIGSTOP)  # else it would start others
        self.stopped = self.place.parts()
        self.addCleanup(self.let_go_on)
        for pid in self.stopped:
            os.kill(pid, signal.SIGSTOP)

    def let_go_on(self):
        while self.stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.stopped.pop(), signal.SIGCONT)

    def test_ctrl_c_ends_the_wait_for_its_answer(self):
        self.stop()
        recording = self.record("-n", "nobody_has_this_name")

        def keeps_interrupts():
            with open(f"/proc/{recording.process.pid}/status") as status:
                blocked = next(line for line in status if line.startswith("SigBlk:"))
            return int(blocked.split()[1], 16) >> (signal.SIGINT - 1) & 1

        wait_for(keeps_interrupts, "it does not begin")
        recording.finish()
        self.assertEqual(recording.exit_code, 128 + signal.SIGINT)
        self.assertEqual(recording.stderr, "heap_profile: cannot record: interrupted before the service answered\n")
        self.assertEqual(recording.files, {})

    def test_ctrl_backslash_leaves_a_recording_to_the_service(self):
        recording = self.record("-n", "patient", "-i", "1").wait_active()
        patient = self.patient().wait_ready()
        patient.tell("a")
        self.stop()
        recording.process.send_signal(signal.SIGINT)
        self.assertIn("Waiting for profiler shutdown", recording.process.stderr.readline())
        recording.process.send_signal(signal.SIGQUIT)
        stderr = recording.process.stderr.readline()  # the service has it, too: no end comes
        self.assertEqual(recording.process.wait(DEADLINE_S), 128 + signal.SIGQUIT)
        trace = os.path.join(recording.directory, "raw-trace")
        self.assertEqual(stderr, f"heap_profile: not waiting for the end of the recording; the service writes {trace}\n")
        self.let_go_on()
        wait_for(lambda: any(name.startswith("heap_dump.") for name in os.listdir(recording.directory)), "nothing is finished")
        self.assertEqual(patient.end(), 0)
        recording.finish(stop=None)


if __name__ == "__main__":
    unittest.main()
