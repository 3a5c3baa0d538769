"""heap_profile top: a screen that shows who holds memory, and a terminal that is as before however it ends."""

import json
import os
import pty
import re
import resource
import select
import signal
import subprocess
import termios
import time
import unittest

from interrupt_test import DEADLINE_S, Terminal
from profile_run import HEAP_PROFILE
from running_process import MAY_ATTACH, Running, changed_code_bytes
from service_run import Place, wait_for
from with_directory import WithDirectory

PYTHON = "/usr/bin/python3"
GROWING = "import time\nkept = []\nwhile True:\n    kept.append(bytearray(1 << 20))\n    time.sleep(0.05)\n"
HOLDER = "[python3."  # what Debian's python3 calls from has no name
ENTERED, LEFT = "\x1b[?1049h", "\x1b[?1049l"


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as children:
        return [int(child) for child in children.read().split()]


class TopTest(WithDirectory):
    def top(self, *arguments, env=None, columns=100):
        """At a terminal, in a shell that tells the terminal's modes before and after."""
        script = 'trap : INT; cd "$0"; stty -g; "$@"; echo "ended $?"; stty -g; echo all'
        place = Place()
        self.addCleanup(place.close)
        env = [f"{name}={value}" for name, value in {**place.env, **(env or {})}.items()]
        terminal = Terminal(["/usr/bin/env", *env, "/bin/sh", "-c", script, self.directory, HEAP_PROFILE, "top", *arguments], columns)
        self.addCleanup(terminal.close)
        return terminal

    def modes_are_as_before(self, text):
        modes = re.findall(r"^[0-9a-f]+(?::[0-9a-f]+){10,}", text, re.MULTILINE)
        self.assertEqual(len(modes), 2, text)
        self.assertEqual(*modes)
        self.assertGreater(text.count(ENTERED), 0)
        self.assertEqual(text.count(ENTERED), text.count(LEFT))
        self.assertEqual(text.count("\x1b[?25l"), text.count("\x1b[?25h"))
        self.assertEqual(text.count("\x1b[?7l"), text.count("\x1b[?7h"))

    def shown(self, *arguments, **options):
        """When it shows who holds the memory."""
        terminal = self.top(*arguments, **options)
        terminal.wait_for(HOLDER)
        return terminal


class OtherTerminals(TopTest):
    """Where the terminal is not ours to use."""

    def test_in_the_background_it_neither_stops_nor_reads_keys(self):
        place = Place()
        self.addCleanup(place.close)
        script = ('set -m; "$@" & read -r line; echo "read $line"; jobs -s | grep -c . ; fg > /dev/null; echo "ended $?"')
        terminal = Terminal(["/usr/bin/env", "HEAPPROFD_DIRECTORY=" + place.directory, "/bin/bash", "-c", script, "bash",
                             HEAP_PROFILE, "top", "-i", "1", "--", PYTHON, "-c", GROWING])
        self.addCleanup(terminal.close)
        child = wait_for(lambda: children_of(terminal.pid), "it has not been started")[0]
        wait_for(lambda: children_of(child), "no recording")
        terminal.press(b"qqq")  # to whoever reads first
        terminal.press(b"\n")
        self.assertIn("read qqq\r\n0\r\n", terminal.wait_for("\r\n0\r\n"))
        terminal.wait_for(HOLDER)  # in front it shows what it has
        terminal.press(b"q")
        text = terminal.wait_for("ended ")
        terminal.exit_code()
        self.assertEqual(text.count(ENTERED), text.count(LEFT))

    def test_at_a_terminal_that_does_not_control_it_there_are_tables(self):
        main, other = pty.openpty()
        self.addCleanup(os.close, main)
        with Place() as place, os.fdopen(other, "r+b", buffering=0) as terminal:
            process = subprocess.Popen([HEAP_PROFILE, "top", "-i", "1", "--count", "2", "--", PYTHON, "-c", GROWING], stdin=terminal,
                                       stdout=terminal, stderr=subprocess.DEVNULL, start_new_session=True,
                                       env={**os.environ, "TERM": "xterm", **place.env})
            self.addCleanup(process.kill)
            text, end = "", time.monotonic() + DEADLINE_S
            while text.count(" objects  python3 ") < 2:
                self.assertLess(time.monotonic(), end, text)
                if select.select([main], [], [], 1)[0]:
                    text += os.read(main, 4096).decode(errors="replace")
            process.wait(timeout=DEADLINE_S)
        self.assertRegex(text, r"(?m)^00:0\d  live ")
        self.assertNotIn("\x1b", text)


class Started(TopTest):
    def test_the_holder_of_a_growing_program_is_shown(self):
        terminal = self.shown("-i", "1", "--", PYTHON, "-c", GROWING, env={"NO_COLOR": "1"})
        terminal.wait_for("MiB/s")
        text = terminal.text
        self.assertIn("python3 (pid ", text)
        self.assertIn("function", text)
        self.assertNotIn("\x1b[1m", text)
        terminal.press(b"q")
        text = terminal.wait_for("\nall")
        terminal.exit_code()
        self.modes_are_as_before(text)
        self.assertIn(f"ended {128 + signal.SIGINT}", text)  # it has ended the program
        after = text[text.rindex(LEFT):]
        self.assertRegex(after, r"\d+ MiB .*\[python3")  # what was shown last stays

    def test_a_program_that_ends_leaves_its_exit_code_and_the_last_table(self):
        terminal = self.top("-i", "1", "--", PYTHON, "-c", "import os; kept = bytearray(5 << 20); os.write(1, b'not seen'); os._exit(3)")
        text = terminal.wait_for("\nall")
        terminal.exit_code()
        self.modes_are_as_before(text)
        self.assertIn("ended 3", text)
        self.assertRegex(text[text.rindex(LEFT):], r"live [5-9]\.\d+ MiB")
        self.assertNotIn("not seen", text)

    def test_a_program_that_cannot_be_started_says_so(self):
        text = self.top("--", "/no/such/program").wait_for("\nall")
        self.modes_are_as_before(text)
        self.assertIn("cannot run /no/such/program", text[text.rindex(LEFT):])
        self.assertIn("ended 127", text)

    def test_without_a_terminal_there_is_a_table_each_second(self):
        with Place() as place:
            done = subprocess.run([HEAP_PROFILE, "top", "-i", "1", "--count", "3", "--top", "2", "--", PYTHON, "-c", GROWING], text=True,
                                  capture_output=True, timeout=120, stdin=subprocess.DEVNULL, env={**os.environ, **place.env})
        tables = [table for table in done.stdout.split("\n\n") if table]
        self.assertEqual(len(tables), 3, done.stdout + done.stderr)
        self.assertNotIn("\x1b", done.stdout)
        for table in tables:
            lines = table.splitlines()
            self.assertEqual(len(lines), 4, table)
            self.assertRegex(lines[0], r"^\d\d:\d\d  live \S+ \S+  change .* objects  python3 \(pid \d+\), every allocation$")
            self.assertRegex(lines[1], "^ +\\*live +change +allocated/s +objects  function$")
        self.assertIn(HOLDER, tables[-1].splitlines()[2])
        self.assertRegex(tables[-1].splitlines()[2], r"^ +\d+\.?\d* MiB +\+\d")

    def test_an_output_that_takes_nothing_is_told(self):
        place = Place()
        self.addCleanup(place.close)
        willing = "import signal, sys\nsignal.signal(signal.SIGINT, lambda *_: sys.exit(0))\n" + GROWING
        for output, cause in [(">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")]:
            done = subprocess.run(["/bin/sh", "-c", f'exec "$0" top --count 2 -- "$@" {output}', HEAP_PROFILE, PYTHON, "-c", willing],
                                  stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False, env=os.environ | place.env,
                                  timeout=DEADLINE_S)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(f"cannot write to standard output: {cause}\n", done.stderr)

    def test_what_has_ended_holds_nothing(self):
        """A child that held 30 MiB and is gone counts no more, as with a build's compilers."""
        gone = self.path("gone")
        script = ("import subprocess, sys, time\n"
                  "subprocess.run([sys.executable, '-c', 'import os; kept = bytearray(30 << 20); os._exit(0)'])\n"
                  f"open({gone!r}, 'w').close()\nkept = []\nwhile True:\n    kept.append(bytearray(1 << 10))\n    time.sleep(0.05)\n")
        with Place() as place:
            process = subprocess.Popen([HEAP_PROFILE, "top", "-i", "512", "--top", "1", "--", PYTHON, "-c", script], text=True, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={**os.environ, **place.env})
            self.addCleanup(process.stdout.close)
            self.addCleanup(lambda: (process.kill(), process.wait()))
            end, live = time.monotonic() + DEADLINE_S, []
            while not (os.path.exists(gone) and live and live[-1] < 20 << 20):
                self.assertLess(time.monotonic(), end, live)
                line = process.stdout.readline()
                self.assertNotEqual(line, "", "it has ended")
                if figures := re.match(r"\d\d:\d\d  live ([\d.]+) (\w+)", line):
                    live.append(float(figures[1]) * {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}[figures[2]])
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=DEADLINE_S)

    def test_nothing_is_4(self):
        with Place() as place:
            done = subprocess.run([HEAP_PROFILE, "top", "--", "/bin/true"], text=True, capture_output=True, timeout=120,
                                  stdin=subprocess.DEVNULL, env={**os.environ, **place.env})
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("nothing recorded: ", done.stderr)

    @unittest.skipIf(os.environ.get("SANITIZE"), "the sanitizers need descriptors of their own")
    def test_without_descriptors_the_cause_is_said(self):
        said = []
        for most in range(4, 16):  # how many are open by then is its own affair
            done = subprocess.run([HEAP_PROFILE, "top", "--", "/bin/true"], text=True, capture_output=True, timeout=120,
                                  stdin=subprocess.DEVNULL, preexec_fn=lambda most=most: resource.setrlimit(
                                      resource.RLIMIT_NOFILE, (most, most)))
            said.append(done.stderr)
            if "cannot create a file in memory: Too many open files" in done.stderr:
                self.assertEqual(done.returncode, 1)
                return
        self.fail(said)

    def test_wrong_command_lines_are_2(self):
        for arguments, words in (([], "cannot profile: no program is named"), (["--dump-at-max", "-p", "1"], "--dump-at-max"),
                                 (["--count", "x", "-p", "1"], "cannot use --count x")):
            done = subprocess.run([HEAP_PROFILE, "top", *arguments], text=True, capture_output=True, stdin=subprocess.DEVNULL)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(words, done.stderr)


@unittest.skipUnless(MAY_ATTACH, "attaching is not allowed here")
class Attached(TopTest):
    def target(self):
        return self.enterContext(Running([PYTHON, "-c", "print('ready', flush=True)\n" + GROWING]))

    def test_every_end_leaves_terminal_and_program_as_before(self):
        for end in ("q", signal.SIGINT, signal.SIGTERM, signal.SIGHUP, b"\x03"):
            with self.subTest(end):
                target = self.target()
                terminal = self.shown("-p", str(target.pid))
                if isinstance(end, signal.Signals):
                    os.kill(self.child_of(terminal.pid), end)
                else:
                    terminal.press(b"q" if end == "q" else end)
                text = terminal.wait_for("\nall")
                terminal.exit_code()
                self.modes_are_as_before(text)
                code = 128 + end if end in (signal.SIGTERM, signal.SIGHUP) else 0
                self.assertIn(f"ended {code}", text)
                wait_for(lambda target=target: changed_code_bytes(target.pid) == 0, "the program is not as before")
                self.assertIsNone(target.process.poll())

    def child_of(self, pid):
        """The viewer: the shell's child."""
        return children_of(pid)[0]

    def test_a_terminal_that_is_stopped_keeps_nobody_from_ending(self):
        terminal = self.shown("-p", str(self.target().pid))
        terminal.press(b"\x13")
        os.kill(self.child_of(terminal.pid), signal.SIGTERM)
        text = terminal.wait_for("\nall")
        terminal.exit_code()
        self.modes_are_as_before(text)
        self.assertIn(f"ended {128 + signal.SIGTERM}", text)

    def test_keys(self):
        target = self.target()
        terminal = self.shown("-i", "1", "-p", str(target.pid))

        def press(key, words):
            terminal.text = ""
            terminal.press(key)
            return terminal.wait_for(words)

        press(b"a", "*allocated/s")
        press(b"d", "*change")
        press(b"o", "*objects")
        press(b"t", "*live")
        press(b"\n", "The largest stack of ")
        press(b"x", "*live")
        press(b" ", "paused")
        press(b" ", "q quit")
        press(b"fnosuchfunction\n", "no function has nosuchfunction")
        press(b"f\x1b", HOLDER)
        name = re.search(r"wrote (\S+\.trace)", press(b"s", ".trace"))[1]
        terminal.press(b"q")
        terminal.wait_for("\nall")
        terminal.exit_code()
        path = os.path.join(self.directory, name)
        shown = subprocess.run([HEAP_PROFILE, "show", path], capture_output=True, text=True)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn(f"python3 (pid {target.pid})", shown.stdout)
        self.assertIn(" python3.", shown.stdout)
        stats = json.loads(subprocess.run([HEAP_PROFILE, "stats", "--json", path], capture_output=True, text=True).stdout)
        self.assertGreater(stats["live_bytes"], 1 << 20)

    def test_a_snapshot_goes_through_no_link(self):
        target = self.target()
        terminal = self.shown("-i", "1", "-p", str(target.pid))
        victim = self.path("victim")
        os.symlink(victim, self.path(f"heap-{target.pid}-1.trace"))
        terminal.press(b"s")
        terminal.wait_for(f"wrote heap-{target.pid}-2.trace")
        self.assertFalse(os.path.exists(victim))
        terminal.press(b"q")
        terminal.wait_for("\nall")
        terminal.exit_code()

    def test_ctrl_z_gives_the_terminal_back_until_it_goes_on(self):
        target = self.target()
        place = Place()
        self.addCleanup(place.close)
        script = 'set -m; "$@"; echo "stopped $?"; stty -a | grep -c " icanon"; read -r; fg > /dev/null; echo "ended $?"'
        terminal = Terminal(["/usr/bin/env", "HEAPPROFD_DIRECTORY=" + place.directory, "/bin/bash", "-c", script, "bash",
                             HEAP_PROFILE, "top", "-p", str(target.pid)])
        self.addCleanup(terminal.close)
        terminal.wait_for(HOLDER)
        terminal.press(b"\x1a")
        text = terminal.wait_for(f"stopped {128 + signal.SIGTSTP}\r\n1")
        self.assertEqual(text.count(ENTERED), text.count(LEFT))
        terminal.text = ""
        terminal.press(b"\n")
        terminal.wait_for(HOLDER)
        terminal.press(b"q")
        text = terminal.wait_for("ended 0")
        terminal.exit_code()
        self.assertGreater(text.count(ENTERED), 0)
        self.assertEqual(text.count(ENTERED), text.count(LEFT))

    def test_another_size_is_filled(self):
        terminal = self.shown("-p", str(self.target().pid))
        terminal.text = ""
        termios.tcsetwinsize(terminal.fd, (9, 60))
        terminal.wait_until(lambda text: any(frame.count("\n") + 1 == 9 for frame in re.findall(r"\x1b\[H[^\x1b]*(?:\x1b(?!\[[HJ])[^\x1b]*)*\x1b\[J", text)),
                            "frame of 9 lines")
        terminal.press(b"q")
        terminal.wait_for("\nall")
        terminal.exit_code()

    def test_a_program_that_is_gone_ends_it(self):
        target = self.target()
        terminal = self.shown("-p", str(target.pid))
        target.process.kill()
        target.process.wait()
        text = terminal.wait_for("\nall")
        terminal.exit_code()
        self.modes_are_as_before(text)
        self.assertIn("ended 0", text)


if __name__ == "__main__":
    unittest.main()
