"""What is said is true: a message that names a cause has established it."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from profile_run import HEAP_PROFILE, program, run, script
from running_process import MAY_ATTACH, MAY_CATCH, Attached, Engine, Running
from service_run import HEAPPROFD, Place, Recording
from with_directory import WithDirectory

ROUND = 1000 * 1000
NOT_A_PID = 2 ** 22 - 1


def tool(*arguments, **kwargs):
    return subprocess.run([HEAP_PROFILE, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60,
                          **kwargs)


def mounts_privately():
    """A command that has mounts of its own runs here."""
    return subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/tmp"], capture_output=True).returncode == 0


def under_mount(options, place, command, **kwargs):
    """A command that sees a tmpfs with these options at a place."""
    return subprocess.run(["unshare", "-m", "/bin/sh", "-c", f'mount -t tmpfs -o {options} tmpfs {place} && exec "$@"', "sh",
                           *command], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120, **kwargs)


class Output(unittest.TestCase):
    def test_what_cannot_be_printed_is_a_failure(self):
        for arguments in (["--help"], ["-h"], ["help"], ["--version"], ["--print-config", "-n", "x"], ["--generate", "zsh"],
                          ["android", "--print-config", "-n", "x"], ["doctor", "--help"], ["mark", "--help"],
                          ["record", "--help"], ["query", "--help"], ["query", "--version"], ["traceconv", "--help"],
                          ["hprof", "--help"], ["java", "--help"]):
            with self.subTest(arguments), open("/dev/full", "w") as full:
                result = subprocess.run([HEAP_PROFILE, *arguments], stdout=full, stderr=subprocess.PIPE, text=True)
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertEqual(result.stderr, "heap_profile: cannot write to standard output: No space left on device\n")

    def test_of_the_service_too(self):
        for option in ("--help", "--version"):
            with open("/dev/full", "w") as full:
                result = subprocess.run([HEAPPROFD, option], stdout=full, stderr=subprocess.PIPE, text=True)
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertEqual(result.stderr, "heapprofd: cannot write to standard output: No space left on device\n")

    def test_each_program_tells_its_version(self):
        version = tool("--version").stdout.split()[1]
        for name in ("perfetto", "traceconv", "trace_processor_shell", "heapprofd"):
            result = subprocess.run([os.path.join(os.environ["COMPAT"], name), "--version"], capture_output=True, text=True)
            self.assertEqual((result.returncode, result.stdout), (0, f"{name} {version}\n"), result.stderr)

    def test_exit_codes_are_in_the_help(self):
        self.assertIn("126: the program cannot be executed", tool("--help").stdout)

    def test_help_is_there_however_it_is_asked_for(self):
        self.assertEqual(tool("help").stdout, tool("--help").stdout)
        result = tool("doctor", "--help")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("usage: heap_profile doctor [-p PIDS]", result.stdout)

    @unittest.skipUnless(mounts_privately(), "nothing can be mounted here")
    def test_on_a_full_disk_no_broken_trace_is_offered(self):
        with tempfile.TemporaryDirectory() as directory:
            result = under_mount("size=64k", directory, [
                HEAP_PROFILE, "-i", "1", "-o", directory + "/out", "--", "/usr/bin/python3", "-c",
                "import json, email.message, http.client"])
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("No space left on device", result.stderr)
        self.assertNotIn("ui.perfetto.dev", result.stderr)
        self.assertNotIn("  pprof  ", result.stderr)


class FailedRecording(unittest.TestCase):
    """The trace can no longer be written while the program runs: the program's end is waited for, as always."""

    def exit_code_of(self, own_code):
        with tempfile.TemporaryDirectory() as directory:
            with subprocess.Popen([HEAP_PROFILE, "-c", "10", "-i", "1", "-o", directory + "/out", "--", sys.executable, "-c",
                                   f"import sys; print('ready', flush=True); sys.stdin.readline(); sys.exit({own_code})"],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
                self.assertEqual(run.stdout.readline(), "ready\n")
                resource.prlimit(run.pid, resource.RLIMIT_FSIZE, (1, 1))
                said = run.stderr.readline()
                self.assertRegex(said, r"heap_profile: cannot .*: File too large; raise ulimit -f; pid \d+ runs on unprofiled")
                _, rest = run.communicate("\n", timeout=60)
        self.assertRegex(rest, "the recording ended after .*, when it could not be written: what happened afterwards is lost")
        return run.returncode

    def test_the_exit_code_is_the_programs(self):
        self.assertEqual(self.exit_code_of(7), 7)

    def test_the_failure_is_the_exit_code_of_a_program_that_succeeds(self):
        self.assertEqual(self.exit_code_of(0), 1)


class Refusals(unittest.TestCase):
    """Wrong command lines: one line that says what and what to do instead."""

    def test_each_has_its_line(self):
        with tempfile.NamedTemporaryFile() as config:
            config.write(tool("--print-config", "-n", "x").stdout.encode())
            config.flush()
            for arguments, words in [
                (["--generate", "pdf"], "cannot generate pdf: use zsh or fish"),
                (["--exclude-heaps", "x", "-n", "x"], "it only makes sense with --all-heaps"),
                (["-n", ",", "--", "true"], "cannot use --name: it needs at least one name"),
                (["-d", "1", "-n", "x" * 5000], "cannot use --name (process_cmdline): a name must have 1 to 4096 characters"),
                (["-d", "1", "-n", b"\xff"], "cannot use --name (process_cmdline) \N{REPLACEMENT CHARACTER}: it is not UTF-8, as names in a "
                                             "configuration are; put * in place of what is not, or name the process by --pid"),
                (["-p", ","], "cannot use --pid: it needs at least one process id"),
                (["-p", "1x"], "cannot use --pid: invalid PID 1x"),
                (["-p", "1,x,2,y"], "cannot use --pid: invalid PID x, y"),
                (["-p", "1 x\n2"], "cannot use --pid: invalid PID x"),
                (["-p", "1", "2", "3"], 'cannot understand "2": process ids are one word; put commas between them, or quotes around '
                                        "them"),
                (["-p", "1", "--", "true"], "cannot use --pid with a program to start, whose process id nobody knows"),
                (["-zz"], "cannot use option -z: there is none of this name; --help lists all options"),
                (["query", "x", "--jsn"], "did you mean --json?"),
                (["traceconv", "bundel"], "there is no such mode; did you mean bundle?"),
                (["hprof", "histogramm", "x"], "there is no such verb; did you mean histogram?"),
                (["java", "-p", "1", "leeks"], "there is no such view; did you mean leaks?"),
                (["hprof", "path", "--holding", "feeble", "x", "y"], "cannot use --holding feeble: it is strong, soft or weak"),
                (["docter", "-p", "1"], "did you mean doctor? Else put -- in front of the program to profile"),
                (["shwo", "x"], "did you mean show?"),
                (["help", "nosuch"], 'cannot help with "nosuch": there is no such command; heap_profile --help lists them'),
                (["help", "shwo"], 'cannot help with "shwo": there is no such command; did you mean show?'),
                (["help", "show", "top"], 'cannot help with "top": help takes one command; ask for each by itself'),
                (["host", "show"], 'cannot understand "show": a command comes before all else; begin with heap_profile show, or '
                                   "put -- in front of the program"),
                (["-i", "1", "top"], "begin with heap_profile top"),
                (["host", "android"], 'cannot understand "android": host or android is named already; leave one out'),
                (["-o", "/etc/passwd", "--", "true"], "/etc/passwd: it is no directory; name another one with --output"),
                (["--heaps", ",", "--", "true"], "cannot use --heaps: it needs at least one name"),
                (["--heaps", "x=0", "--", "true"], "the interval of x must be a number of bytes from 1 to 1 TiB"),
                (["--top", "1001", "--", "true"], "it must be a number from 0 to 1000"),
                (["android", "--", "true"], "cannot start a program on a device"),
                (["doctor", "12"], 'cannot understand "12": doctor takes processes as -p PIDS'),
                (["doctor", "-p"], "its value PIDS is missing"),
                (["doctor", "-p", "x"], "cannot use --pid: invalid PID x"),
                (["mark"], "cannot mark: one name is needed"),
                (["record"], "cannot record: no configuration is named; use -c FILE"),
                (["record", "word"], 'cannot understand "word": it is no option'),
                (["query"], "cannot query: no trace is named; for example: heap_profile query raw-trace"),
                (["query", "x", "-Q"], "cannot use -Q: its value SQL is missing"),
                (["query", "x", "--color"], "cannot use option --color: there is none of this name"),
                (["traceconv"], "cannot convert: no mode is named"),
                (["traceconv", "json"], 'cannot convert to "json": there is no such mode'),
                (["traceconv", "text", "a", "b", "c"], "there is one input and one output at most, not c"),
                (["traceconv", "profile", "a", "b"], "name a directory with --output-dir"),
                (["traceconv", "profile", "--alloc", "--java-heap"], "cannot use --alloc and --java-heap together"),
                (["traceconv", "profile", "--timestamps", ","], "cannot use --timestamps: it names no time"),
                (["traceconv", "profile", "--pid", "-1"], "it is no whole number from 0 to 9223372036854775807"),
                (["traceconv", "profile", "--perf"], "cannot convert CPU profiles"),
                (["traceconv", "bundle"], "cannot make a bundle: it needs an input and an output file"),
                (["traceconv", "text", "--help=1"], "cannot use --help=1: --help takes no value"),
                (["traceconv", "deobfuscate", "/dev/null"], "cannot deobfuscate: no mapping file is named; set "),
                (["-n", "x", "--no-running", "--no-startup"], "no process could match; leave one out"),
                (["-n", "x", "--idle-allocations", "--heaps", "x"], "where the blocks of other heaps lie is not known; add libc.malloc to --heaps"),
                (["-n", "x", "--idle-allocations", "--dump-at-max"], "nobody looks at memory when most is live; leave one out"),
                (["-i", "0", "--", "true"], "a number of bytes from 1 to 1 TiB"),
                (["--no-startup", "--", "true"], "cannot use --no-startup with a program to start; use it with --name or --pid"),
                (["stats"], "cannot tell figures: one file is needed; for example: heap_profile stats raw-trace"),
                (["diff", "x"], "cannot compare: two files are needed; for example: heap_profile diff before.trace after.trace"),
                (["leaks"], "cannot look for leaks: one file is needed; for example: heap_profile leaks raw-trace"),
                (["show"], "cannot show: no file is named; for example: heap_profile show raw-trace"),
                (["report"], "cannot report: no file is named; for example: heap_profile report raw-trace"),
                (["export", "pprof", "x", "--pid", "y"], "cannot use --pid y: it must be a process id"),
                (["stats", "x", "--fail-if", "live>1x"], "cannot use --fail-if live>1x: "),
                (["hprof"], "cannot examine: no verb is named; heap_profile hprof --help lists them"),
                (["hprof", "histogram"], "cannot examine: no file is named; heap_profile hprof --help shows how"),
                (["hprof", "conv", "x"], "cannot convert: one input and one output are needed; for example: heap_profile hprof conv"),
                (["hprof", "merge", "x"], "cannot merge: a head, a tail and an output are needed; for example: heap_profile hprof"),
                (["java", "-p", "1", "--arm-oom", "--disarm-oom"], "cannot use --arm-oom together with --disarm-oom"),
                (["java", "-p", "1", "--arm-oom", "--top", "3"], "cannot use --all, --json, --memory-budget, --retained or --top with --arm-oom or"),
                (["java", "-p", "1", "--no-view"], "cannot use --no-view: it only makes sense with --keep, without a view"),
                (["java", "--arm-oom"], "cannot ask a virtual machine: neither -p nor -n is given; heap_profile java"),
            ]:
                with self.subTest(arguments):
                    result = tool(*arguments)
                    self.assertEqual(result.returncode, 2, result.stderr)
                    self.assertIn(words, result.stderr)
                    self.assertEqual(len(result.stderr.splitlines()), 1)
            perfetto = os.path.join(os.environ["COMPAT"], "perfetto")
            for arguments, words in [(["-c", config.name], "cannot record: no output is named; use -o FILE"),
                                     (["-c", config.name, "-o", "-", "-d"], "cannot record in the background to standard output: it is no file; name one with --out")]:
                result = subprocess.run([perfetto, *arguments], capture_output=True, text=True)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertIn(words, result.stderr)

    def test_files_that_cannot_be_read_are_named(self):
        for arguments, words in [(["query", "/nonexistent", "SELECT 1"], "/nonexistent"),
                                 (["query", "/dev/null", "-q", "/nonexistent"], "cannot open the queries in /nonexistent"),
                                 (["query", "/dev/null", "-q", "/"], "cannot read the queries in /: Is a directory"),
                                 (["record", "-c", "/"], "cannot read trace configuration /: Is a directory"),
                                 (["record", "-c", "/nonexistent"], "cannot open trace configuration /nonexistent"),
                                 (["traceconv", "text", "/nonexistent"], "/nonexistent")]:
            with self.subTest(arguments):
                result = tool(*arguments)
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertIn(words, result.stderr)


    def test_what_the_service_is_told_wrongly(self):
        for arguments, words in [(["--directory", "here"], "cannot use --directory here: it must begin with /"),
                                 (["--directory", "/tmp/" + "x" * 120], "the path is too long; name a shorter one with --directory")]:
            result = subprocess.run([HEAPPROFD, *arguments], capture_output=True, text=True)
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(words, result.stderr)

    def test_variables_that_choose_how_to_find_names(self):
        for variable, value, words in [
                ("PERFETTO_SYMBOLIZER_MODE", "guess", "it is neither find (by path) nor index (by build id)"),
                ("HEAPPROFD_SYMBOLIZER", "nm", "cannot use HEAPPROFD_SYMBOLIZER=nm: it is neither libdw nor llvm-symbolizer"),
                ("PERFETTO_PROGUARD_MAP", "a=", 'cannot use PERFETTO_PROGUARD_MAP: "a=" names no file; its form is package=file')]:
            with self.subTest(variable):
                result = tool("-q", "-o", "/dev/null/x", "--", "true", env={**os.environ, variable: value})
                self.assertNotEqual(result.returncode, 0)
                self.assertIn(words, result.stderr)


class WhatCannotBeWritten(WithDirectory):
    def test_a_result_in_the_place_of_a_directory(self):
        stacks = os.path.join(self.directory, "stacks")
        with open(stacks, "w") as file:
            file.write("main;f 1\n")
        trace = os.path.join(self.directory, "o", "raw-trace")
        tool("-q", "-o", os.path.dirname(trace), "--", "/bin/true")
        result = tool("traceconv", "text", trace, self.directory)
        self.assertEqual(result.returncode, 1)
        self.assertIn(f"traceconv: cannot create {self.directory}: it is a directory; name a file in it\n", result.stderr)
        with open("/dev/full", "w") as full:
            result = subprocess.run([HEAP_PROFILE, "query", stacks, "SELECT 1"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual((result.returncode, result.stderr),
                         (1, "heap_profile query: cannot write the result: No space left on device\n"))

    def test_without_standard_output_nothing_else_is_written_to(self):
        stacks = os.path.join(self.directory, "stacks")
        with open(stacks, "w") as file:
            file.write("main;f 1\n")
        for arguments in (["show", stacks], ["export", "-f", "folded", stacks], ["query", stacks, "SELECT 1"], ["report", "-o", "-", stacks]):
            with self.subTest(arguments):
                result = subprocess.run(["/bin/sh", "-c", 'exec "$0" "$@" >&-', HEAP_PROFILE, *arguments], stderr=subprocess.PIPE, text=True,
                                        check=False)
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertIn("Bad file descriptor", result.stderr)
        with open(stacks) as file:
            self.assertEqual(file.read(), "main;f 1\n")

    def test_figures(self):
        result = tool("-q", "-o", self.directory + "/o", "--", "/bin/true",
                      env={**os.environ, "HEAPPROFD_STATS_JSON": self.directory + "/no/figures"})
        self.assertEqual(result.returncode, 1)
        self.assertIn(f"HEAPPROFD_STATS_JSON: cannot create {self.directory}/no/figures: No such file", result.stderr)

    def test_a_fresh_output_directory(self):
        result = tool("--", "/bin/true", env={**os.environ, "TMPDIR": self.directory + "/no"})
        self.assertEqual(result.returncode, 1)
        self.assertIn(f"cannot create an output directory in {self.directory}/no (name another with --output): No such",
                      result.stderr)

    @unittest.skipUnless(os.geteuid() == 0, "of root only")
    def test_a_directory_that_others_may_change(self):
        os.chmod(self.directory, 0o777)
        result = tool("-o", self.directory, "--", "/bin/true")
        self.assertEqual(result.returncode, 2)
        self.assertIn("other users may change it; name one that is root's alone", result.stderr)

    @unittest.skipUnless(os.geteuid() == 0, "somebody else is needed")
    def test_a_process_that_cannot_be_started(self):
        os.chmod(self.directory, 0o777)
        result = tool("-o", self.directory + "/o", "--", "/bin/true", user=65534, group=65534,
                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NPROC, (0, 0)))
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("heap_profile: cannot start a process: Resource temporarily unavailable", result.stderr)

    def test_a_trace_on_a_full_output(self):
        with tempfile.NamedTemporaryFile("w") as config, open("/dev/full", "w") as full, Place() as place:
            config.write(tool("--print-config", "-n", "nobody", "-d", "10").stdout)
            config.flush()
            result = subprocess.run([os.path.join(os.environ["COMPAT"], "perfetto"), "-c", config.name, "-o", "-"],
                                    stdout=full, stderr=subprocess.PIPE, text=True, env={**os.environ, **place.env})
        self.assertEqual(result.returncode, 1)
        self.assertIn("cannot write the trace to standard output: No space left on device", result.stderr)


class Numbers(unittest.TestCase):
    def test_what_is_too_large_is_not_called_no_number(self):
        for option, value in (("-i", "99999999999999999999"), ("-i", "2199023255552"), ("-d", "99999999999"),
                              ("-c", "99999999999"), ("--block-client-timeout", "99999999999"), ("--top", "1001"),
                              ("--heaps", "x=99999999999999999999")):
            with self.subTest(option):
                result = tool(option, value, "--", "true")
                self.assertEqual(result.returncode, 2)
                self.assertRegex(result.stderr, " (from|up) .*to |from 0 to")

    def test_the_rule_is_told(self):
        self.assertIn("microseconds from 0 to 4294967295; 0 waits as long as the profiler moves",
                      tool("--block-client-timeout", "99999999999", "--", "true").stderr)

    def test_of_traceconv_too(self):
        self.assertIn("from 0 to", tool("traceconv", "profile", "--pid", "99999999999999999999").stderr)


class Options(unittest.TestCase):
    def test_a_part_of_a_name_that_no_other_begins_with_is_enough(self):
        self.assertIn("sampling_interval_bytes: 77", tool("--print", "-n", "x", "--int", "77").stdout)
        self.assertIn("sampling_interval_bytes: 77", tool("--print-config", "--nam=x", "--inter=77").stdout)
        result = tool("--no-st", "-n", "x")
        self.assertEqual(result.returncode, 2)
        self.assertIn("it could be --no-startup, --no-start", result.stderr)
        self.assertIn("could be --block-client, --block-client-timeout", tool("--block", "-n", "x").stderr)
        self.assertEqual(tool("--block-client", "--print-config", "-n", "x").returncode, 0)  # a whole name

    def test_the_duration_is_perfettos_where_nothing_else_ends_the_recording(self):
        week = "duration_ms: 604800000"
        self.assertIn(week, tool("--print-config", "-n", "x").stdout)
        self.assertIn(week, tool("android", "--print-config", "-p", "12").stdout)
        for arguments in (["-n", "x", "-d", "0"], ["--", "true"]):
            self.assertNotIn(week, tool("--print-config", *arguments).stdout)


class Causes(unittest.TestCase):
    def test_a_file_of_no_known_format_is_called_that(self):
        with tempfile.NamedTemporaryFile() as file:
            for content in (bytes(range(7, 250)), b"\x0a\x02ab" * 50, os.urandom(4000), b"nonsense\n"):
                file.seek(0)
                file.truncate()
                file.write(content)
                file.flush()
                result = tool("query", file.name, "SELECT 1")
                self.assertNotIn("it is no pprof profile", result.stderr)

    def test_a_source_file_is_no_profile(self):
        with tempfile.NamedTemporaryFile("w", suffix=".c") as file:
            file.write("#include <stdio.h>\n\nint main(void) {\n  return 0;\n}\n")
            file.flush()
            result = tool("query", file.name, "SELECT 1")
        self.assertEqual(result.returncode, 1)
        self.assertIn("its format is not known", result.stderr)

    def test_a_missing_interpreter_is_named(self):
        with tempfile.TemporaryDirectory() as directory:
            result = run([script(directory, "s", "#!/no/such/shell\n")])
        self.assertEqual(result.exit_code, 127)
        self.assertIn("its interpreter /no/such/shell does not exist", result.stderr)

    def test_heaps_that_are_left_out_are_the_reason(self):
        result = run(["/bin/ls", "/"], ["--all-heaps", "--exclude-heaps", "libc.malloc"])
        self.assertIn("nothing recorded: the program has shown no other heap than those that --exclude-heaps leaves out",
                      result.stderr)

    @unittest.skipUnless(os.geteuid() == 0, "somebody else is needed")
    def test_other_users_processes_are_said_to_be_that(self):
        with Running([program("patient"), "1"], stdin=subprocess.PIPE), Place() as place:
            os.chown(place.directory, 65534, 65534)
            with tempfile.TemporaryDirectory() as directory:
                os.chmod(directory, 0o777)
                result = tool("-n", "patient", "-d", "100", "-o", directory + "/out", user=65534, group=65534,
                              env={**os.environ, **place.env})
        self.assertRegex(result.stderr, r"cannot record \d+ process(es)? of this name: (it is another user's|they are other "
                                        r"users'); run heap_profile as root")
        self.assertIn("nothing recorded: the processes of this name are other users'", result.stderr)

    def test_a_bounded_wait_is_not_the_profilers_fault(self):
        result = run([sys.executable, "-c", "import json, http.client"],
                     ["-i", "1", "--shmem-size", "8192", "--block-client-timeout", "1"])
        self.assertNotIn("stop the profiler", result.stderr)

    def test_children_that_nobody_wants_are_not_missed(self):
        for command in (["/bin/true"], ["/bin/sh", "-c", "/bin/true; /bin/true; :"]):
            result = run(command, ["--no-children"])
            self.assertEqual(result.exit_code, 0, result.stderr)
            self.assertNotIn("not recorded", result.stderr)
            self.assertNotIn("never", result.stderr)

    def test_a_program_of_another_name_is_not_missed(self):
        result = run(["/bin/sh", "-c", f"{program('patient')} 1 < /dev/null; exit 0"], ["-i", "1", "-n", "patient"])
        self.assertEqual(result.main.of("kept_block")["space"], ROUND)
        self.assertNotIn("not recorded", result.stderr)
        result = run(["/bin/true"], ["-n", "nobody"])
        self.assertIn("no process was found whose program file, argv[0] or command name is nobody", result.stderr)

    def test_memory_of_a_short_program_is_known_to_have_a_limit(self):
        result = run(["/bin/ls", "/"], ["-i", "1"])
        self.assertRegex(result.stderr, r"\n  RSS +(at most )?[\d.]+ [KM]iB")

    def test_allocations_without_a_sample_are_counted(self):
        result = run([program("patient"), "1"], ["-i", "1000000000000"])
        self.assertRegex(result.stderr, r"no sample was taken of [\d.]+ k? ?allocations with [\d.]+ [KM]iB")

    def test_a_program_that_ends_before_it_is_recorded_is_not_said_to_lack_memory(self):
        with tempfile.TemporaryDirectory() as directory:
            killed = script(directory, "killed", "#!/bin/sh\nkill -9 $$\n")
            result = run([killed])
        self.assertEqual(result.exit_code, 128 + signal.SIGKILL)
        self.assertNotIn("no address space was left for the buffer", result.stderr)

    def test_functions_without_a_name_far_out_are_not_worth_a_line(self):
        # Debian's perl is stripped, and its allocations are made by functions with names.
        result = run(["perl", "-e", "my %h; $h{$_} = \"x$_\" for 1..20000"], ["-i", "512"])
        for line in result.stderr.splitlines():
            if "functions without a name" in line:
                self.assertNotIn("100%", line)
                self.assertLess(len(line), 200)

    def test_the_package_with_the_names_is_told(self):
        result = run(["sqlite3", ":memory:", "create table t(a); insert into t select hex(randomblob(50)) from "
                      "generate_series(1, 20000); select count(*) from t"], ["-i", "512"], {"DEBUGINFOD_URLS": ""})
        for line in result.stderr.splitlines():
            if "functions without a name in libsqlite3" in line:
                self.assertIn("set DEBUGINFOD_URLS=https://debuginfod.debian.net or install libsqlite3-0-dbgsym", line)


class Headline(unittest.TestCase):
    def test_the_program_that_was_started_goes_before_its_helpers(self):
        helper = f"{sys.executable} -c 'import subprocess; kept = bytearray(3000000); " \
                 f"subprocess.run([\"{program('patient')}\", \"4\"], stdin=subprocess.DEVNULL)'"
        result = run(["/bin/sh", "-c", "exec " + helper])
        self.assertRegex(result.stderr, r"Recorded .* of python3[.\d]* \(pid")

    def test_a_wrapper_is_named_and_what_it_has_started_is_shown(self):
        result = run(["/bin/sh", "-c", f"{program('patient')} 20 < /dev/null; exit 0"])
        self.assertRegex(result.stderr, r"Recorded .* of sh \(pid \d+\); the most memory was in patient \(pid \d+\), heap")


class Directories(unittest.TestCase):
    def test_tmpdir_holds_what_is_temporary(self):
        with tempfile.TemporaryDirectory() as directory:
            os.chmod(directory, 0o755)
            env = {**os.environ, "TMPDIR": directory}
            env.pop("XDG_RUNTIME_DIR", None)
            result = tool("--", "/bin/sh", "-c", "echo $HEAPPROFD_SESSION", env=env)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertTrue(result.stdout.startswith(directory + "/"), result.stdout)
            self.assertIn(f"  trace  {directory}/", result.stderr)

    @unittest.skipUnless(mounts_privately(), "nothing can be mounted here")
    def test_a_tmp_that_cannot_be_written_to_is_no_end(self):
        env = {name: value for name, value in os.environ.items() if name not in ("XDG_RUNTIME_DIR", "TMPDIR")}
        result = under_mount("ro", "/tmp", [HEAP_PROFILE, "-i", "1", "--", program("patient"), "1"], env=env)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("kept_block", result.stderr)
        trace = next(line.split()[1] for line in result.stderr.splitlines() if line.startswith("  trace  "))
        self.assertFalse(trace.startswith("/tmp/"))
        shutil.rmtree(os.path.dirname(trace))


@unittest.skipUnless(MAY_ATTACH, "attaching is not allowed here")
class AttachMessages(unittest.TestCase):
    def test_memory_from_before_is_said_not_to_be_seen(self):
        with Running([program("patient"), "30"], stdin=subprocess.PIPE) as target:
            with Engine() as engine, tempfile.TemporaryDirectory() as directory:
                recording = engine.tool("-p", str(target.pid), "-i", "1", "-o", directory + "/out", stderr=subprocess.PIPE,
                                        text=True)
                while "Profiling active" not in (line := recording.stderr.readline()):
                    self.assertTrue(line)
                target.process.stdin.write("a")
                target.process.stdin.flush()
                self.assertEqual(target.process.stdout.readline(), "kept\n")
                recording.send_signal(signal.SIGINT)
                _, errors = recording.communicate(timeout=60)
        self.assertRegex(errors, r"! attached while it ran: what it had allocated before is not seen \(live 97\d KiB beside "
                                 r"RSS [\d.]+ MiB\)")

    def test_one_bad_pid_does_not_keep_the_others_from_being_recorded(self):
        with Running([program("patient"), "1"], stdin=subprocess.PIPE) as target:
            attached = Attached(f"{NOT_A_PID},{target.pid}", 200)
        self.assertEqual(attached.result.returncode, 4, attached.result.stderr)
        self.assertIn(f"cannot attach to process {NOT_A_PID}: there is no such process", attached.result.stderr)
        self.assertIn("Profiling active", attached.result.stderr)
        self.assertEqual(attached.stats["processes"], 1)

    def test_a_relative_file_of_figures_is_where_the_caller_is(self):
        with Running([program("patient"), "1"], stdin=subprocess.PIPE) as target, Engine() as engine, \
                tempfile.TemporaryDirectory() as directory:
            engine_env = {**os.environ, **engine.env, "HEAPPROFD_STATS_JSON": "figures.json"}
            result = tool("-p", str(target.pid), "-d", "100", "-q", "-o", "out", cwd=directory, env=engine_env)
            self.assertEqual(result.returncode, 4, result.stderr)
            with open(os.path.join(directory, "figures.json")) as file:
                self.assertEqual(json.load(file)["processes"], 1)

    def test_doctor_tells_what_an_earlier_recording_has_left(self):
        with Running([program("patient"), "1"], stdin=subprocess.PIPE) as target:
            self.assertNotIn("attached to before", tool("doctor", "-p", str(target.pid)).stdout)
            Attached(target.pid, 50)
            self.assertIn("note  it has been attached to before; that memory is used again",
                          tool("doctor", "-p", str(target.pid)).stdout)

    def test_doctor_looks_at_several_processes(self):
        with Running([program("patient"), "1"], stdin=subprocess.PIPE) as target:
            result = tool("doctor", "-p", f"{target.pid},{os.getpid()}")
        self.assertIn(f"process {target.pid}\n", result.stdout)
        self.assertIn(f"process {os.getpid()}\n", result.stdout)

    @unittest.skipUnless(MAY_CATCH, "watching for new processes is not allowed here")
    def test_a_name_may_be_a_link_and_what_it_starts_is_not_of_that_name(self):
        with Engine() as engine, tempfile.TemporaryDirectory() as directory:
            os.symlink(program("patient"), os.path.join(directory, "blork"))
            starter = script(directory, "starter_script",
                             f"#!/bin/sh\n{directory}/blork 2 < /dev/null > /dev/null\n{program('heap_life')} > /dev/null\n:\n")
            engine.env["PATH"] = directory + ":" + os.environ["PATH"]
            for name, expected in (("blork", "blork"), ("starter_script", "sh")):
                recording = Recording(engine, ["-n", name, "-i", "1"]).wait_active()
                subprocess.run([starter], check=True, env={**os.environ, "PATH": engine.env["PATH"]})
                recording.finish()
                self.assertEqual(recording.exit_code, 0, recording.stderr)
                self.assertEqual(len(recording.pprofs), 1, recording.stderr)
                self.assertIn(f" of {expected} (pid", recording.stderr)


if __name__ == "__main__":
    unittest.main()
