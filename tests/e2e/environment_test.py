"""What surrounds a run: the environment of children, a full disk, a profiler that dies."""

import array
import fcntl
import json
import os
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
import time
import unittest

from profile_run import HEAP_PROFILE, RUNS_32_BIT, program, run, script

DEADLINE_S = 60


def can_mount(directory):
    return subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", directory],
                          capture_output=True).returncode == 0


def unread(pipe):
    """Bytes that a pipe holds."""
    count = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return count[0]


def write_32_bit_program(path):
    """An i386 ELF file that exits with 5."""
    code = bytes.fromhex("b801000000" "bb05000000" "cd80")  # eax = exit, ebx = 5, int 0x80
    base, headers = 0x08048000, 52 + 32
    size = headers + len(code)
    header = b"\x7fELF\x01\x01\x01" + bytes(9) + struct.pack(
        "<HHIIIIIHHHHHH", 2, 3, 1, base + headers, 52, 0, 0, 52, 32, 1, 0, 0, 0)
    segment = struct.pack("<IIIIIIII", 1, 0, base, base, size, size, 5, 0x1000)
    with open(path, "wb") as file:
        file.write(header + segment + code)
    os.chmod(path, 0o755)


class Environment(unittest.TestCase):
    def test_a_child_without_environment_runs_unharmed(self):
        result = run(["/usr/bin/env", "-i", "/bin/sh", "-c", "echo ran"], ["-i", "1"])
        self.assertEqual((result.exit_code, result.stdout), (0, "ran\n"), result.stderr)

    def test_a_child_without_environment_is_counted_and_named(self):
        result = run(["/bin/sh", "-c", "env -i /bin/echo a; env -i /bin/true"], ["-i", "1"])
        self.assertEqual(result.exit_code, 0, result.stderr)
        self.assertRegex(result.stderr, r"! 2 programs were not recorded \((/bin/echo, /bin/true|/bin/true, /bin/echo)\): "
                                        "started with a cleaned environment")

    def test_however_a_static_program_is_started_it_is_counted(self):
        static = program("static_hello")
        result = run([program("starter"), static, "a"], ["-i", "1"])
        self.assertTrue(result.stdout.endswith("3 3 3 3 3 3 3 3 3 \n"), result.stdout)
        self.assertIn(f"! 9 programs were not recorded ({static}, ...): statically linked", result.stderr)

    @unittest.skipUnless(os.geteuid() == 0, "only root makes PID name spaces")
    def test_in_a_pid_name_space_those_that_are_recorded_are_not_missed(self):
        with tempfile.TemporaryDirectory() as directory:
            stats, sandbox = os.path.join(directory, "stats.json"), ["unshare", "-pf", "--mount-proc"]
            result = run([*sandbox, program("starter"), program("exits"), "return"], ["-i", "1"], {"HEAPPROFD_STATS_JSON": stats})
            self.assertTrue(result.stdout.endswith("7 7 7 7 7 7 7 7 7 \n"), result.stdout)
            self.assertNotIn("not recorded", result.stderr)
            with open(stats) as file:
                self.assertEqual(json.load(file)["unrecorded"], 0)
        static = program("static_hello")
        result = run([*sandbox, program("starter"), static, "a"], ["-i", "1"])
        self.assertIn(f"! 9 programs were not recorded ({static}, ...): statically linked", result.stderr)

    def test_programs_that_are_started_find_their_arguments_and_are_recorded(self):
        with tempfile.TemporaryDirectory() as directory:
            path = script(directory, "script", '#!/bin/sh\n[ "$1|$2|$#" = "a|b c|2" ] || exit 9\nexit "${VARIABLE:+7}"\n')
            plain = subprocess.run([program("starter"), path, "a"], capture_output=True, text=True)
            result = run([program("starter"), path, "a"], ["-i", "1"])
        self.assertEqual(plain.stdout.count("7"), 5, plain.stdout)
        self.assertEqual(result.stdout, plain.stdout, result.stderr)
        self.assertNotIn("not recorded", result.stderr)

    def test_attempts_to_start_what_is_not_there_are_not_counted(self):
        result = run([program("starter"), "/no/such/program", "a"], ["-i", "1"])
        self.assertEqual(result.stdout, "111 111 111 111 111 111 111 112 112 \n")
        result_of_text = run([program("starter"), "/etc/passwd", "a"], ["-i", "1"])
        self.assertNotIn("not recorded", result.stderr + result_of_text.stderr)

    @unittest.skipUnless(os.path.exists(program("exits_musl_dynamic")), "no musl-gcc here")
    def test_a_program_on_musl_is_recorded_unless_it_is_static(self):
        result = run([program("exits_musl_dynamic"), "return"], ["-i", "1"])
        self.assertEqual(result.exit_code, 7, result.stderr)
        self.assertEqual(result.main.of("kept_block")["space"], 1000 * 1000)
        self.assertEqual(result.main.of("main")["space"], 1000 * 1000)
        result = run([program("exits_musl_static"), "return"], ["-i", "1"])
        self.assertEqual(result.exit_code, 7, result.stderr)
        self.assertIn("statically linked", result.stderr)

    def test_a_32_bit_child_is_counted(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "small")
            write_32_bit_program(path)
            try:
                self.assertEqual(subprocess.run([path]).returncode, 5)
            except OSError:
                self.skipTest("this kernel runs no 32-bit programs")
            result = run(["/bin/sh", "-c", f"{path}; echo $?"], ["-i", "1"])
        self.assertEqual(result.stdout, "5\n")
        self.assertIn(f"! 1 program was not recorded ({path}): 32-bit", result.stderr)

    @unittest.skipUnless(RUNS_32_BIT, "nothing here runs 32-bit programs")
    def test_a_32_bit_child_says_what_it_always_says(self):
        command = ["/bin/sh", "-c", f"{program('hello32')} 2>&1; echo $?"]
        plain = subprocess.run(command, capture_output=True, text=True)
        result = run(command, ["-i", "1"])
        self.assertEqual(plain.stdout, "ok\n5\n")
        self.assertEqual(result.stdout, plain.stdout)
        self.assertIn(f"! 1 program was not recorded ({program('hello32')}): 32-bit", result.stderr)

    @unittest.skipUnless(os.geteuid() == 0, "only root can make a setuid program of another user")
    def test_a_program_that_gains_privileges_says_why_nothing_is_recorded(self):
        with tempfile.TemporaryDirectory() as directory:
            os.chmod(directory, 0o755)
            prefix = os.path.join(directory, "prefix")
            subprocess.run(["cmake", "--install", os.environ["BUILD_DIRECTORY"], "--prefix", prefix], check=True,
                           capture_output=True)
            privileged = os.path.join(directory, "privileged")
            shutil.copy("/bin/cat", privileged)
            os.chmod(privileged, 0o4755)
            as_nobody = {"user": 65534, "group": 65534, "extra_groups": [], "env": {"PATH": os.environ["PATH"]},
                         "cwd": "/", "capture_output": True, "text": True}
            tool = os.path.join(prefix, "bin", "heap_profile")
            itself = subprocess.run([tool, "--", privileged, "/dev/null"], **as_nobody)
            child = subprocess.run([tool, "-i", "1", "--", "/bin/sh", "-c", f"{privileged} /dev/null; true"], **as_nobody)
        self.assertEqual(itself.returncode, 0, itself.stderr)
        self.assertIn(f"nothing recorded: {privileged} gains privileges", itself.stderr)
        self.assertIn(f"1 program was not recorded ({privileged}): gaining privileges", child.stderr)

    def test_a_seccomp_filter_never_kills_for_a_system_call_of_ours(self):
        for way, recorded, missed in [("prctl", 100000, 0), ("syscall", 100000, 0), ("child", 100000, 0),
                                      ("parent", 0, 1), ("exec", 0, 1), ("spawn", 0, 1)]:
            with self.subTest(way):
                result = run([program("confined"), way], ["-i", "1"])
                self.assertEqual(result.exit_code, 0, result.stderr)
                self.assertEqual(sum(p.of("confined_block")["space"] for p in result.pprofs), recorded, result.stderr)
                note = "1 program was not recorded ({}): begun under a seccomp filter".format(program("confined"))
                self.assertEqual(result.stderr.count(note), missed, result.stderr)

    def assert_counted_and_named(self, result, reason):
        self.assertEqual(result.exit_code, 0, result.stderr)
        self.assertIn("1 forked child that took no sample: allocated 97.7 KiB in 100 calls, counted", result.stderr)
        self.assertIn(f"! 1 program was not recorded ({program('out_of_reach')}): {reason}", result.stderr)

    def test_forked_children_without_a_descriptor_are_counted_on(self):
        result = run([program("out_of_reach"), "files"], ["-i", "1"])
        self.assert_counted_and_named(result, "without a file descriptor left to ask the profiler with")

    @unittest.skipUnless(os.geteuid() == 0, "only root can change a process's root")
    def test_forked_children_in_another_root_are_counted_on(self):
        with tempfile.TemporaryDirectory() as jail:
            result = run([program("out_of_reach"), "folder", jail], ["-i", "1"])
        self.assert_counted_and_named(result, "begun where the profiler's socket is not there or not allowed")

    @unittest.skipUnless(os.geteuid() == 0, "only root can change a process's root")
    def test_those_that_go_there_when_their_parent_has_ended_too(self):
        with tempfile.TemporaryDirectory() as jail:
            result = run([program("out_of_reach"), "orphan", jail], ["-i", "1000000"])
        self.assertIn("1 forked child that took no sample: allocated 977 KiB in 2 calls, counted", result.stderr)
        self.assertIn(f"! 1 program was not recorded ({program('out_of_reach')}): begun where the profiler's socket is not there or "
                      "not allowed", result.stderr)

    @unittest.skipUnless(os.geteuid() == 0, "only root can change a process's root")
    def test_programs_in_another_root_are_named_as_unrecorded(self):
        with tempfile.TemporaryDirectory() as jail:
            shutil.copy(program("static_hello"), os.path.join(jail, "hello"))
            for command in [[program("out_of_reach"), "folder", jail, "/hello"], ["chroot", jail, "/hello"]]:
                with self.subTest(command[0]):
                    result = run(command, ["-i", "1"])
                    self.assertEqual((result.exit_code, result.stdout), (3, "static ok\n"), result.stderr)
                    self.assertIn(f"! 1 program was not recorded ({command[0]}): begun where the profiler's socket is not "
                                  "there or not allowed", result.stderr)

    @unittest.skipIf(os.environ.get("SANITIZE"), "the sanitizers need descriptors of their own")
    def test_a_limit_on_open_files_that_stops_the_profiler_is_told(self):
        reasons = set()
        for files in range(6, 16):
            command = ["/bin/sh", "-c", f"ulimit -n {files}; exec {HEAP_PROFILE} -i 1 -- /bin/echo ran"]
            done = subprocess.run(command, capture_output=True, text=True)
            if "Recorded" not in done.stderr:
                reasons.add(done.stdout)
                self.assertIn("Too many open files", done.stderr)
        self.assertIn("ran\n", reasons)  # the program was started, and could not be taken

    def test_a_limit_on_the_size_of_files_is_an_error_like_a_full_disk(self):
        with tempfile.TemporaryDirectory() as directory:
            command = ["/bin/bash", "-c", f"ulimit -f 8; exec {HEAP_PROFILE} --no-report -o {directory}/o -- /bin/echo ran"]
            done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, "ran\n"), done.stderr)
        self.assertIn("nothing recorded: 1 program was not recorded (/bin/echo: cannot size shared memory: File too "
                      "large; raise ulimit -f)", done.stderr)

    def test_what_no_file_may_hold_any_more_is_shown_as_it_was_at_the_end(self):
        with tempfile.TemporaryDirectory() as directory:
            trace = os.path.join(directory, "out", "raw-trace")
            script = ("import os, resource, signal, time\n"
                      "largest = bytearray(30_000_000)\n"
                      "del largest\n"
                      f"begin = os.stat({trace!r}).st_size\n"
                      "os.kill(os.getppid(), signal.SIGUSR1)\n"
                      f"end = time.monotonic() + {DEADLINE_S}\n"
                      f"while os.stat({trace!r}).st_size == begin and time.monotonic() < end:\n"
                      "    time.sleep(0.01)\n"
                      "resource.prlimit(os.getppid(), resource.RLIMIT_FSIZE, (512, 512))\n"
                      "kept = bytearray(20_000_000)\n"
                      "os._exit(0)\n")
            done = subprocess.run([HEAP_PROFILE, "-o", os.path.join(directory, "out"), "--", "/usr/bin/python3", "-c", script],
                                  capture_output=True, text=True, timeout=2 * DEADLINE_S)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, "cannot write trace .*: File too large")
        # The dump that is on the disk has neither this nor, as its interval begins with the recording, another time.
        self.assertRegex(done.stderr, r"live at end  (19|2\d)\.\d MiB .* peak [23]\d\.\d MiB .*at [1-9]")
        self.assertIn("! there is no complete trace; a line above says why", done.stderr)
        self.assertRegex(done.stderr, "cannot make the pprof files: cannot write .*: File too large; raise ulimit -f\n")

    def test_told_to_end_while_results_are_made_it_leaves_figures_and_a_whole_trace(self):
        with tempfile.TemporaryDirectory() as directory:
            figures, out = os.path.join(directory, "figures"), os.path.join(directory, "out")
            ours, theirs = os.pipe()
            size = fcntl.fcntl(theirs, fcntl.F_SETPIPE_SZ, 4096)
            with subprocess.Popen([HEAP_PROFILE, "-i", "1", "--top", "1000", "--no-report", "-o", out, "--", "/usr/bin/python3", "-c",
                                   "import json, decimal"], stderr=theirs, env={**os.environ, "HEAPPROFD_STATS_JSON": figures}) as process:
                os.close(theirs)
                end = time.monotonic() + DEADLINE_S
                while unread(ours) < size and time.monotonic() < end:  # until the summary has no room
                    time.sleep(0.01)
                self.assertEqual(unread(ours), size)
                process.send_signal(signal.SIGTERM)
                with open(ours, encoding="utf-8", errors="replace") as pipe:
                    said = pipe.read()
                self.assertEqual(process.wait(DEADLINE_S), 1, said)
            self.assertTrue(said.endswith(f"heap_profile: cannot show what was recorded: it was interrupted; try heap_profile show {out}/raw-trace\n"),
                            said)
            with open(figures) as file:
                self.assertGreater(json.load(file)["alloc_calls"], 0)
            shown = subprocess.run([HEAP_PROFILE, "show", os.path.join(out, "raw-trace")], capture_output=True, text=True, timeout=DEADLINE_S)
            self.assertIn("Top live memory", shown.stdout, shown.stderr)

    def test_of_results_that_need_more_memory_than_is_allowed_the_report_is_told_of_too(self):
        if os.environ.get("SANITIZE"):
            self.skipTest("a sanitizer reserves terabytes")
        with tempfile.TemporaryDirectory() as directory:
            out = os.path.join(directory, "out")
            script = ("import decimal, json, os, resource\n"
                      "ours = os.getppid()\n"
                      "with open(f'/proc/{ours}/status') as status:\n"
                      "    used = next(int(line.split()[1]) for line in status if line.startswith('VmData:')) * 1024\n"
                      "resource.prlimit(ours, resource.RLIMIT_DATA, (used + 3_000_000,) * 2)\n")
            done = subprocess.run([HEAP_PROFILE, "-i", "1", "-o", out, "--", "/usr/bin/python3", "-c", script], capture_output=True, text=True,
                                  timeout=DEADLINE_S)
            self.assertEqual(done.returncode, 1, done.stderr)
            cause = r"the worker needed more than \d MiB of memory; "
            trace = f"{out}/raw-trace"
            self.assertRegex(done.stderr, f"heap_profile: cannot show what was recorded: {cause}try heap_profile show {trace}\n"
                             f"heap_profile: cannot make the report: {cause}the trace is complete, heap_profile report {trace} makes it\n$")
            made = subprocess.run([HEAP_PROFILE, "report", "-q", "-o", os.path.join(out, "report.html"), trace], capture_output=True, text=True,
                                  timeout=DEADLINE_S)
            self.assertEqual(made.returncode, 0, made.stderr)

    def test_a_program_without_address_space_for_the_buffer_runs_and_is_named(self):
        limited = "ulimit -v 60000; exec /bin/echo ran"
        for command in (["/bin/bash", "-c", limited], ["/bin/sh", "-c", f"/bin/bash -c '{limited}'; true"]):
            result = run(command, ["-i", "1", "--shmem-size", "134217728"])
            self.assertEqual((result.exit_code, result.stdout), (0, "ran\n"), result.stderr)
            self.assertEqual(result.stderr.count("1 program was not recorded (/bin/echo): no buffer was mapped"), 1)

    def test_a_program_with_address_sanitizer_is_recorded_and_still_checked(self):
        with tempfile.TemporaryDirectory() as directory:
            source = os.path.join(directory, "a.c")
            with open(source, "w") as file:
                file.write("#include <stdlib.h>\n"
                           "int main(int argc, char** argv) {\n"
                           "  char* volatile kept = calloc(1, 100000);\n"
                           "  char* volatile gone = malloc(10);\n"
                           "  free(gone);\n"
                           "  return argc > 1 ? gone[0] : kept[0] + 7;\n"
                           "}\n")
            built = subprocess.run(["gcc", "-g", "-fsanitize=address", source, "-o", source + ".out"], capture_output=True)
            if built.returncode != 0:
                self.skipTest("no AddressSanitizer here")
            options = {"ASAN_OPTIONS": "detect_leaks=0:exitcode=42"}
            good = run([source + ".out"], ["-i", "1"], options)
            bad = run([source + ".out", "bad"], ["-i", "1"], options)
        self.assertEqual(good.exit_code, 7, good.stderr)
        self.assertEqual(good.main.of("main")["space"], 100000, good.stderr)
        self.assertEqual(bad.exit_code, 42)
        self.assertIn("heap-use-after-free", bad.stderr)

    def test_a_script_is_profiled_through_its_interpreter(self):
        with tempfile.TemporaryDirectory() as directory:
            path = script(directory, "script", "#!/usr/bin/perl\nmy @kept = map { 'x' x 1000 } 1..2000; print 'ok';\n")
            result = run([path])
            self.assertEqual((result.exit_code, result.stdout), (0, "ok"), result.stderr)
            self.assertGreater(result.main.total("alloc_space"), 1_000_000)

    def test_standard_input_reaches_the_program(self):
        with tempfile.TemporaryDirectory() as directory:
            finished = subprocess.run([HEAP_PROFILE, "-q", "-o", directory, "--", "/bin/cat"], input="a line\n",
                                      capture_output=True, text=True, timeout=DEADLINE_S)
        self.assertEqual((finished.returncode, finished.stdout), (0, "a line\n"))

    def test_a_full_disk_is_named_and_the_exit_code_is_not_success(self):
        with tempfile.TemporaryDirectory() as directory:
            if not can_mount(directory):
                self.skipTest("mounting is not allowed here")
            try:
                with open(os.path.join(directory, "filler"), "wb") as filler:
                    filler.write(b"x" * (60 << 10))
                finished = subprocess.run(
                    [HEAP_PROFILE, "-i", "1", "-o", os.path.join(directory, "out"), "--", "/usr/bin/python3", "-c",
                     "import json, decimal"], capture_output=True, text=True, timeout=DEADLINE_S)
            finally:
                subprocess.run(["umount", directory], check=True)
        self.assertEqual(finished.returncode, 1, finished.stderr)
        self.assertRegex(finished.stderr, "cannot write trace .*: No space left on device; free space there or choose another")
        self.assertIn("cannot make the report", finished.stderr)
        self.assertIn("! there is no complete trace; a line above says why", finished.stderr)
        self.assertRegex(finished.stderr, r"allocated .* MiB in \d+ calls")  # no disk is needed to show that
        self.assertRegex(finished.stderr, r"cannot make the pprof files: cannot write .*: No space left on device\n")
        self.assertNotIn("the trace is complete", finished.stderr)

    def test_a_program_outlives_a_profiler_that_is_killed(self):
        script = ("import sys\n"
                  "print('ready', flush=True)\n"
                  "sys.stdin.readline()\n"
                  "kept = [bytearray(50_000) for _ in range(2000)]\n"
                  "print('done', len(kept), flush=True)\n")
        with tempfile.TemporaryDirectory() as directory:
            process = subprocess.Popen([HEAP_PROFILE, "-i", "1", "-o", directory, "--", "/usr/bin/python3", "-c", script],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       text=True)
            self.assertEqual(process.stdout.readline(), "ready\n")
            process.send_signal(signal.SIGKILL)
            process.wait()
            begin = time.monotonic()
            out, _ = process.communicate("\n", timeout=DEADLINE_S)
        self.assertEqual(out, "done 2000\n")
        self.assertLess(time.monotonic() - begin, DEADLINE_S / 2, "the program waited for a dead profiler")


if __name__ == "__main__":
    unittest.main()
