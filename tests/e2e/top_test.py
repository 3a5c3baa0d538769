"""heap_profile top: a screen that shows who holds memory, and a terminal that is as before however it ends."""

import json
import os
import re
import signal
import subprocess
import tempfile
import termios
import unittest

from interrupt_test import Terminal
from profile_run import HEAP_PROFILE
from running_process import MAY_ATTACH, Running, changed_code_bytes
from service_run import Place, wait_for

PYTHON = "/usr/bin/python3"
GROWING = "import time\nkept = []\nwhile True:\n    kept.append(bytearray(1 << 20))\n    time.sleep(0.05)\n"
HOLDER = "[python3."  # what Debian's python3 calls from has no name
ENTERED, LEFT = "\x1b[?1049h", "\x1b[?1049l"


class TopTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

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

    def test_nothing_is_4(self):
        with Place() as place:
            done = subprocess.run([HEAP_PROFILE, "top", "--", "/bin/true"], text=True, capture_output=True, timeout=120,
                                  stdin=subprocess.DEVNULL, env={**os.environ, **place.env})
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("nothing recorded: ", done.stderr)

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
        with open(f"/proc/{pid}/task/{pid}/children") as children:
            return int(children.read().split()[0])

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
        frame = terminal.wait_for("\x1b[J")
        self.assertEqual(frame[frame.rindex("\x1b[H"):].count("\n") + 1, 9, frame)
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
