"""Every option of heap_profile runs, its values are checked, and help, manual page and completions know it."""

import glob
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from profile_run import HEAP_PROFILE, Started, program, run

BUILD_DIRECTORY = os.environ["BUILD_DIRECTORY"]
COMPAT = os.environ["COMPAT"]
HEAPPROFD = os.path.join(COMPAT, "heapprofd")
COMPLETION = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "packaging", "heap_profile.bash")
ROUND = 1000 * 1000
COMMAND = [program("patient"), "1"]  # keeps one round


def tool(*arguments, **kwargs):
    return subprocess.run([HEAP_PROFILE, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL, **kwargs)


def generated(what):
    result = tool("--generate", what)
    assert result.returncode == 0, result.stderr
    return result.stdout


def kept(result, expected=ROUND):
    return result.main.of("kept_block")["space"] == expected


# Option: (what else is on the command line, what holds for a run of COMMAND).
WITH_PROGRAM = {
    "name": (["patient,other"], kept),
    "no-running": ([], kept),
    "no-children": ([], kept),
    "heaps": (["libc.malloc"], kept),
    "all-heaps": ([], kept),
    "exclude-heaps": (["mine", "--all-heaps"], kept),
    "interval": (["1"], kept),
    "duration": (["60000"], kept),
    "block-client": ([], kept),
    "no-block-client": ([], kept),
    "block-client-timeout": (["1000000"], kept),
    "shmem-size": (["65536"], kept),
    "continuous-dump": (["100000"], lambda result: result.pprofs[-1].of("kept_block")["space"] == ROUND),
    "dump-at-max": ([], lambda result: result.main.of("kept_block")["max_space"] == ROUND),
    "malloc-info": ([], lambda result: "by glibc and the kernel" in result.stderr),
    "idle-allocations": ([], lambda result: kept(result) and
                         ("cannot track idle memory: there is no /sys/kernel/mm/page_idle/bitmap" in result.stderr) !=
                         os.path.exists("/sys/kernel/mm/page_idle/bitmap")),
    "top": (["1"], lambda result: " 2  " not in result.stderr and kept(result)),
    "quiet": ([], lambda result: result.stderr == "" and kept(result)),
    "no-report": ([], lambda result: "report.html" not in result.stderr and kept(result)),
    "no-start": ([], kept),
    # No meaning here: one line says so and the recording goes on.
    "disable-fork-teardown": ([], lambda result: noted(result, "--disable-fork-teardown")),
    "trace-to-text-binary": (["/bin/true"], lambda result: noted(result, "--trace-to-text-binary")),
    "no-annotations": ([], lambda result: noted(result, "--no-annotations")),
    "disable-selinux": ([], lambda result: noted(result, "--disable-selinux")),
    "no-versions": ([], lambda result: noted(result, "--no-versions")),
    "simpleperf": ([], lambda result: noted(result, "--simpleperf")),
}
# Tested below, or in service_test.py or with_java_test.py, in a way of their own.
OTHERWISE = {"pid", "no-startup", "output", "print-config", "help", "version", "generate", "with-java", "java-dumps"}


def noted(result, option):
    notes = [line for line in result.stderr.splitlines() if line.startswith("heap_profile: note: ")]
    return len(notes) == 1 and option in notes[0] and kept(result)


class EveryOption(unittest.TestCase):
    def setUp(self):
        self.options = re.findall(r"^complete -c heap_profile -l ([a-z-]+)", generated("fish"), re.MULTILINE)

    def test_the_table_is_complete(self):
        self.assertEqual(sorted(self.options), sorted([*WITH_PROGRAM, *OTHERWISE]))

    def test_each_works_with_a_program(self):
        for option, (values, holds) in WITH_PROGRAM.items():
            with self.subTest(option):
                result = Started(COMMAND, ["-i", "1", "--" + option, *values]).finish()
                self.assertEqual(result.exit_code, 0, result.stderr)
                self.assertTrue(holds(result), result.stderr)

    def test_each_is_in_help_manual_page_and_completions(self):
        short, full = tool("-h").stdout, tool("--help").stdout
        self.assertLess(len(short.splitlines()), len(full.splitlines()))
        with open(os.path.join(BUILD_DIRECTORY, "share", "man", "man1", "heap_profile.1")) as file:
            page = file.read().replace("\\-", "-")
        for text in (short, full, page, generated("zsh")):
            for option in self.options:
                self.assertIn("--" + option, text)

    def test_letters_and_equal_signs(self):
        for form in (["-i1"], ["-i", "1"], ["--interval=1"], ["--interval", "1"]):
            with self.subTest(form):
                self.assertTrue(kept(run(COMMAND, form)))

    def test_sub_modes_stand_anywhere(self):
        for form in (["host", "-i", "1"], ["-i", "1", "host"]):
            with self.subTest(form):
                self.assertTrue(kept(run(COMMAND, form)))


class Values(unittest.TestCase):
    def test_wrong_ones_are_refused_by_name(self):
        for arguments, words in [
            (["-i", "0"], "--interval"),
            (["-i", "-5"], "--interval"),
            (["-i", "many"], "--interval"),
            (["--shmem-size", "4096"], "--shmem-size"),
            (["--shmem-size", "12288"], "--shmem-size"),
            (["--shmem-size", "8191"], "--shmem-size"),
            (["--shmem-size", "512M"], "--shmem-size"),
            (["-d", "long"], "--duration"),
            (["-c", "1.5"], "--continuous-dump"),
            (["--block-client-timeout", "-1"], "--block-client-timeout"),
            (["--block-client", "--no-block-client"], "--no-block-client"),
            (["--no-startup", "--no-running", "-n", "x"], "--no-running"),
            (["-p", "12,x"], "invalid PID x"),
            (["-p", "0"], "invalid PID 0"),
            (["-n", ","], "--name"),
            (["--heaps", "x" * 64], "--heaps"),
            (["--top", "5000"], "--top"),
            (["-o", ""], "--output"),
            (["--no-startup"], "--no-startup"),
        ]:
            with self.subTest(arguments):
                result = tool(*arguments, "--", "true")
                self.assertEqual(result.returncode, 2)
                self.assertIn(words, result.stderr)
                self.assertEqual(len(result.stderr.splitlines()), 1)

    def test_units(self):
        self.assertIn("sampling_interval_bytes: 4096", tool("--print-config", "-n", "x", "-i", "4K").stdout)
        self.assertIn("shmem_size_bytes: 1048576", tool("--print-config", "-n", "x", "--shmem-size", "1MiB").stdout)


class Generated(unittest.TestCase):
    @unittest.skipUnless(shutil.which("man"), "no man here")
    def test_manual_pages_are_well_formed(self):
        pages = glob.glob(os.path.join(BUILD_DIRECTORY, "share", "man", "man*", "*.[18]"))
        self.assertGreater(len(pages), 9)
        for page in pages:
            result = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", page], capture_output=True, text=True,
                                    env={**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "80"})
            self.assertEqual(result.stderr, "", page)
            self.assertIn("SYNOPSIS\n", result.stdout)
            self.assertNotRegex(result.stdout, r"\n[A-Z ]+\n+[A-Z ]+\n", page)  # a headline with nothing below it
            if page.endswith("/heap_profile.1"):
                self.assertIn("--dump-at-max", result.stdout)

    def test_bash_completes_what_the_commands_take(self):
        script = ('source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _heap_profile; printf "%s\\n" "${COMPREPLY[@]}"')
        for words, expected in [
            (["heap_profile", "--no-st"], {"--no-start", "--no-startup"}),
            (["heap_profile", "re"], {"record", "report"}),
            (["heap_profile", "hprof", "l"], {"leaks", "loaders"}),
            (["heap_profile", "hprof", "--j"], {"--json"}),
            (["heap_profile", "java", "his"], {"histogram"}),
            (["heap_profile", "query", "--tab"], {"--table"}),
            (["heap_profile", "query", "--j"], {"--json"}),
            (["heap_profile", "hprof", "histo"], {"histogram"}),
            (["heap_profile", "traceconv", "te"], {"text"}),
            (["traceconv", "sym"], {"symbolize"}),
            (["trace_processor_shell", "--j"], {"--json"}),
            (["perfetto", "--txt-"], {"--txt-lossy"}),
            (["heapprofd", "--d"], {"--directory"}),
            (["heap_profile", "-i", ""], set()),  # nobody can guess
            (["heap_profile", "-o", "heapp"], {"heapprofd"}),
        ]:
            with self.subTest(words):
                result = subprocess.run(["bash", "-c", script, COMPLETION, *words], capture_output=True, text=True, check=True,
                                        cwd=COMPAT, env={**os.environ, "PATH": COMPAT + ":" + os.environ["PATH"]})
                self.assertEqual(set(result.stdout.split()), expected)

    @unittest.skipUnless(shutil.which("fish"), "fish is not installed")
    def test_fish_completes_what_the_commands_take(self):
        daemon = subprocess.run([HEAPPROFD, "--generate", "fish"], capture_output=True, text=True, check=True).stdout
        with tempfile.TemporaryDirectory() as home:
            script = os.path.join(home, "completions.fish")
            with open(script, "w") as file:
                file.write(generated("fish") + daemon)
            for line, expected in [
                ("heap_profile --no-st", {"--no-start", "--no-startup"}),
                ("heap_profile hprof --js", {"--json"}),
                ("traceconv sym", {"symbolize"}),
                ("trace_processor_shell --j", {"--json"}),
                ("perfetto --txt-", {"--txt-lossy"}),
                ("heapprofd --d", {"--directory"}),
            ]:
                with self.subTest(line):
                    result = subprocess.run(["fish", "--no-config", "-c", 'source $argv[1]; complete -C $argv[2]', script, line],
                                            capture_output=True, text=True, check=True, cwd=home,
                                            env={"HOME": home, "PATH": COMPAT + ":" + os.environ["PATH"]})
                    self.assertEqual({row.split("\t")[0].rstrip("=") for row in result.stdout.splitlines()}, expected)

    def test_zsh_reads_what_is_generated_for_it(self):
        text = generated("zsh")
        self.assertEqual(text.splitlines()[0], "#compdef heap_profile perfetto traceconv trace_processor_shell hprof-conv java_heap_dump")
        if shutil.which("zsh"):
            subprocess.run(["zsh", "--no-rcs", "-n"], input=text, text=True, check=True)

    def test_what_cannot_be_generated_is_refused(self):
        for program in (HEAP_PROFILE, HEAPPROFD):
            result = subprocess.run([program, "--generate", "pdf"], capture_output=True, text=True, check=False)
            self.assertEqual(result.returncode, 2)
            self.assertIn("zsh or fish", result.stderr)


if __name__ == "__main__":
    unittest.main()
