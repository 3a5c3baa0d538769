"""What is seen at a terminal: widths, colours, and a status line that the program's output stays off."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

from interrupt_test import Terminal
from profile_run import HEAP_PROFILE, program
from running_process import MAY_ATTACH, Running

STATUS = re.compile(r"\x1b7(.*?)\x1b8", re.DOTALL)
SEQUENCE = re.compile(r"\x1b(?:\[[0-9;]*[a-zA-Z]|[78])")


def at_terminal(width, *arguments, env=(), tool=HEAP_PROFILE):
    """All that is shown there, to the end."""
    terminal = Terminal(["/usr/bin/env", *env, "/bin/sh", "-c", '"$@"; echo "ended $?"', "sh", tool, *arguments], width)
    try:
        return terminal.wait_for("ended ")
    finally:
        terminal.exit_code()
        terminal.close()


class TerminalTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)

    def summary(self, width, env=()):
        with tempfile.TemporaryDirectory() as directory:
            text = at_terminal(width, "-i", "1", "-o", directory + "/o", "--", program("known_stacks"), env=env)
        return text[text.index("Recorded "):]

    def test_the_summary_fits(self):
        for width in (80, 200):
            # The status line, which a busy machine shows beside it, has the last row to itself.
            lines = [part for text in STATUS.split(self.summary(width)) for part in SEQUENCE.sub("", text).split("\r\n")]
            self.assertGreater(len(lines), 10)
            for line in lines:
                self.assertLessEqual(len(line), width, line)

    def test_colours_are_there_unless_nobody_wants_them(self):
        self.assertIn("\x1b[1m", at_terminal(
            80, "-i", "1", "-o", self.directory.name + "/a", "--", program("known_stacks"), env=["-u", "NO_COLOR"]))
        self.assertNotIn("\x1b[1m", at_terminal(
            80, "-i", "1", "-o", self.directory.name + "/b", "--", program("known_stacks"), env=["NO_COLOR=1"]))

    def test_the_programs_output_is_not_on_the_status_line(self):
        script = "echo first; read line < /dev/tty; echo second"
        terminal = Terminal([HEAP_PROFILE, "-o", self.directory.name + "/o", "--", "/bin/sh", "-c", script])
        self.addCleanup(terminal.close)
        terminal.wait_for("Ctrl-C to stop")
        terminal.press(b"\n")
        text = terminal.wait_for("second")
        terminal.exit_code()
        shown = [m for m in re.finditer(r"\x1b7\x1b\[(\d+);1H([^\x1b]*)\x1b\[K\x1b8", text)]
        self.assertTrue(shown)
        for match in shown:  # in the last row, which does not scroll, and nothing else is there
            self.assertEqual(match.group(1), "30")
            self.assertTrue(match.group(2).startswith("* "), match.group(2))
        self.assertIn("\x1b[1;29r", text)
        self.assertNotIn("Ctrl-C to stop", re.sub(r"\x1b7.*?\x1b8", "", text))

    def test_names_steer_no_terminal_and_begin_no_line(self):
        """Whatever the command, and whatever is written there."""
        folded = os.path.join(self.directory.name, "folded")
        name = "f\x1b]pwn\x07\x1b[31mE\u009b2J\u202egnp"
        with open(folded, "w") as file:
            file.write("main;plain 5\n" * 400 + f"main;{name} 5\n")  # its beginning says what it is
        commands = [["export", "--format", kind, folded] for kind in ("csv", "folded", "speedscope")]
        commands += [["query", option, folded, "select name, 'a\nforged' from stack_profile_frame"] for option in ("--csv", "--json")]
        commands += [["query", folded, "select name, 'a\nforged' from stack_profile_frame"], ["show", folded], ["stats", folded],
                     ["stats", "--json", folded], ["diff", folded, folded], ["leaks", folded]]
        for arguments in commands:
            with self.subTest(arguments=arguments):
                shown = SEQUENCE.sub("", at_terminal(80, *arguments, env=["NO_COLOR=1"]))
                self.assertNotRegex(shown, "[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\u202e]")
                self.assertNotIn("\nforged", shown)
        written = os.path.join(self.directory.name, "csv")
        subprocess.run([HEAP_PROFILE, "export", "--format", "csv", "-o", written, folded], check=True)
        with open(written) as file:
            self.assertIn(name, file.read())

    def test_what_is_no_text_is_not_written_to_a_terminal(self):
        folded = os.path.join(self.directory.name, "folded")
        with open(folded, "w") as file:
            file.write("main;f 5\n")
        self.assertIn("cannot write standard output: it is a terminal, and this is no text; name a file by -o",
                      at_terminal(200, "export", "--format", "pprof", folded))
        config = os.path.join(self.directory.name, "config")
        with open(config, "w") as file:
            file.write("duration_ms: 10\ndata_sources { config { name: 'android.heapprofd' "
                       "heapprofd_config { sampling_interval_bytes: 4096 process_cmdline: 'none_of_this_name' } } }\n")
        self.assertIn("cannot write the trace to standard output: it is a terminal, and a trace is no text; name a file by -o",
                      at_terminal(200, "-c", config, "--txt", "-o", "-", tool=os.path.join(os.environ["COMPAT"], "perfetto")))

    def test_a_program_whose_name_has_a_line_end_does_not_speak_for_us(self):
        path = os.path.join(self.directory.name, "x\x1b[31m\nheap_profile: forged")
        shutil.copy(program("patient"), path)
        done = subprocess.run([HEAP_PROFILE, "-i", "1", "-d", "100", "-o", self.directory.name + "/o", "--", path], input="q\n", text=True,
                              capture_output=True, timeout=60, check=False)
        self.assertIn("forged", done.stderr)
        self.assertNotRegex(done.stderr, "(?m)^heap_profile: forged")
        self.assertNotIn("\x1b", done.stderr)

    def shown(self, env=()):
        """A terminal with a status line, above which a program waits."""
        terminal = Terminal(["/usr/bin/env", *env, HEAP_PROFILE, "-i", "1", "-o", self.directory.name + "/o", "--", program("patient"), "1"])
        self.addCleanup(terminal.close)
        terminal.wait_for("Ctrl-C to stop")
        return terminal

    def test_the_line_of_the_heap_ends_with_its_end(self):
        terminal = self.shown(env=["LC_ALL=C.UTF-8"])
        terminal.wait_for("live 978 KiB")  # it has been looked at
        terminal.press(b"q\n")
        text = SEQUENCE.sub("", terminal.wait_for("raw-trace"))
        terminal.exit_code()
        self.assertRegex(text, "RSS +[\\d.]+ MiB +heap \u2581*.*\u2588\r\n")  # all is live at the end, which is the peak

    def test_ctrl_backslash_leaves_no_status_line(self):
        terminal = self.shown()
        terminal.press(b"\x1c")
        terminal.wait_for("\x1b[r")
        self.assertEqual(terminal.exit_code(), 128 + signal.SIGQUIT)

    def test_ctrl_z_takes_the_status_line_away_until_it_goes_on(self):
        # Until all of the job stand still: the program, which reads the terminal, could take the line that is for read.
        script = ('set -m; "$@"; code=$?; for pid in $(pgrep -g "$(jobs -p)"); do until grep -q "^State:.T" /proc/$pid/status; do :; done; done; '
                  'echo "stopped $code"; read -r; fg > /dev/null; echo "ended $?"')
        terminal = Terminal(["/bin/bash", "-c", script, "bash", HEAP_PROFILE, "-i", "1", "-o", self.directory.name + "/o",
                             "--", program("patient"), "1"])
        self.addCleanup(terminal.close)
        terminal.wait_for("Ctrl-C to stop")
        terminal.press(b"\x1a")
        self.assertIn("\x1b[r", terminal.wait_for(f"stopped {128 + signal.SIGTSTP}"))
        terminal.text = ""
        terminal.press(b"\n")
        terminal.wait_for("Ctrl-C to stop")
        terminal.press(b"\x03")
        self.assertIn("\x1b[r", terminal.wait_for(f"ended {128 + signal.SIGINT}"))
        terminal.exit_code()

    def test_ctrl_z_stops_nobody_where_no_shell_could_let_him_go_on(self):
        terminal = self.shown()  # alone in its session
        terminal.press(b"\x1a")
        terminal.wait_for("\x1b[r")
        terminal.press(b"q\n")
        self.assertEqual(terminal.exit_code(), 0)

    @unittest.skipUnless(MAY_ATTACH, "attaching is not allowed here")
    def test_there_is_a_status_line_while_attached(self):
        with Running([program("patient"), "1"], stdin=subprocess.PIPE) as target:
            terminal = Terminal(["/usr/bin/env", "HEAPPROFD_DIRECTORY=" + self.directory.name + "/service", HEAP_PROFILE, "-o",
                                 self.directory.name + "/o", "-p", str(target.pid)])
            self.addCleanup(terminal.close)
            text = terminal.wait_for("Ctrl-C to stop")
            self.assertRegex(text, r"\* 00:\d\d  live .* samples")
            terminal.press(b"\x03")
            terminal.wait_for("\x1b[r")
            terminal.exit_code()


if __name__ == "__main__":
    unittest.main()
