"""Attaching to running processes, and catching new ones by name."""

import concurrent.futures
import contextlib
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from profile_run import HEAP_PROFILE, Pprof, program, run, script
from running_process import (GATE, LONG_S, MAY_ATTACH, MAY_CATCH, Attached, Engine, Running, changed_code_bytes,
                             child_named, dumped_now, state_of, storm, wait_until)
from service_run import PRELOAD, Recording

PYTHON_PROGRAM = """
import time
kept = []
print("ready", flush=True)
end = time.monotonic() + 60
while time.monotonic() < end:
    kept.append(bytearray(5000))
    time.sleep(0.001)
"""

PERL_SCRIPT = "#!/usr/bin/perl\nmy @a = map { $_ x 10 } 1..1000; print scalar(@a);\n"


def maps_of(pid):
    with open(f"/proc/{pid}/maps") as file:
        return file.read()


def fanotify_marks(pid):
    """For each group of events on files that a process has, what it watches."""
    directory = f"/proc/{pid}/fd"
    groups = [name for name in os.listdir(directory)
              if os.readlink(os.path.join(directory, name)) == "anon_inode:[fanotify]"]
    marks = []
    for name in groups:
        with open(f"/proc/{pid}/fdinfo/{name}") as file:
            marks.append([line for line in file if line.startswith("fanotify sdev:")])
    return marks


@unittest.skipUnless(MAY_ATTACH, "attaching to every process is not allowed here")
class AttachTest(unittest.TestCase):
    def test_a_running_python_has_a_profile_and_goes_on_with_its_code_unchanged(self):
        with (Running([sys.executable, "-c", PYTHON_PROGRAM]) as target, Engine() as engine,
              tempfile.TemporaryDirectory() as directory):
            out = os.path.join(directory, "out")
            tool = engine.tool("-p", str(target.pid), "-d", "700", "-o", out, stderr=subprocess.PIPE, text=True)
            _, errors = tool.communicate(timeout=60)
            self.assertEqual(tool.returncode, 0, errors)
            profile = Pprof(glob.glob(os.path.join(out, "heap_dump.*"))[0])
            self.assertGreater(profile.of("PyByteArray_Resize")["space"], 100_000, errors)
            self.assertLessEqual({functions[0] for functions, _ in profile.stacks()}, {"malloc", "calloc", "realloc"})
            self.assertIsNone(target.process.poll())
            self.assertEqual(changed_code_bytes(target.pid), 0)

    def test_the_allocator_of_one_that_is_attached_to_is_not_asked_and_that_is_said(self):
        with storm(LONG_S) as target:
            attached = Attached(target.pid, 300, ["--malloc-info", "--no-report", "--no-children"])
        self.assertEqual(attached.result.returncode, 0, attached.result.stderr)
        self.assertIn(f"cannot ask the allocator of process {target.pid} for its accounting: only the library of programs that are "
                      "started under heap_profile, or with LD_PRELOAD, asks it, and this one was attached to; start the program so",
                      attached.result.stderr)

    def test_no_moment_is_behind_the_end(self):
        """The peak of what only grows is its end, also when placing the hooks has taken its time."""
        with (Running([sys.executable, "-c", PYTHON_PROGRAM]) as target, Engine() as engine,
              tempfile.TemporaryDirectory() as directory):
            out = os.path.join(directory, "out")
            tool = engine.tool("-p", str(target.pid), "-d", "300", "--no-report", "-o", out, stderr=subprocess.PIPE, text=True)
            _, errors = tool.communicate(timeout=60)
            trace = os.path.join(out, "raw-trace")
            stats = json.loads(subprocess.run([HEAP_PROFILE, "stats", "--json", trace], check=True, capture_output=True).stdout)
            (row,) = json.loads(subprocess.run(
                [HEAP_PROFILE, "query", "--json", trace, "SELECT (max(peak_ts) - min(start_ts)) / 1e9 AS peak FROM heap_dump"],
                check=True, capture_output=True).stdout)
            self.assertGreaterEqual(stats["seconds"], row["peak"], errors)

    def test_ctrl_c_takes_the_hooks_out(self):
        with storm(LONG_S) as target, Engine() as engine, tempfile.TemporaryDirectory() as directory:
            tool = engine.tool("-p", str(target.pid), "-q", "-o", os.path.join(directory, "out"))
            wait_until(lambda: changed_code_bytes(target.pid) > 0)
            tool.send_signal(signal.SIGINT)
            self.assertIn(tool.wait(60), (0, 4))  # 4: it came before the first sample
            self.assertEqual(changed_code_bytes(target.pid), 0)
            self.assertIsNone(target.process.poll())

    def test_nothing_in_a_storm_notices_repeated_attaching(self):
        with storm(4) as target:
            while target.process.poll() is None:
                attached = Attached(target.pid, 50, ["-q"])
                if attached.result.returncode != 0 or target.process.poll() is not None:
                    break  # it has just ended
                self.assertGreater(attached.stats["alloc_calls"], 0)
            self.assertEqual(target.process.wait(60), 0, target.process.stdout.read())

    def test_a_killed_engine_leaves_a_healthy_process_that_the_next_one_puts_right(self):
        with storm(LONG_S) as target, Engine() as engine, tempfile.TemporaryDirectory() as directory:
            with engine.tool("-p", str(target.pid), "-o", os.path.join(directory, "out"), stderr=subprocess.PIPE) as tool:
                while b"Profiling active" not in tool.stderr.readline():
                    self.assertIsNone(tool.poll())
                engine.kill()
                self.assertNotEqual(tool.wait(60), 0)
            self.assertGreater(changed_code_bytes(target.pid), 0)
            attached = Attached(target.pid, 50, ["-q"])
            self.assertEqual(attached.result.returncode, 0, attached.result.stderr)
            self.assertEqual(changed_code_bytes(target.pid), 0)
            self.assertIsNone(target.process.poll())

    def test_two_recordings_of_one_process_are_refused(self):
        with storm(LONG_S) as target, Engine() as engine, tempfile.TemporaryDirectory() as directory:
            tool = engine.tool("-p", str(target.pid), "-q", "-o", os.path.join(directory, "out"))
            wait_until(lambda: changed_code_bytes(target.pid) > 0)
            self.assertIn("another session", engine.attach(target.pid, 50).result.stderr)
            second = Attached(target.pid, 50)  # by another engine
            self.assertNotEqual(second.result.returncode, 0)
            self.assertIn("another heap_profile records it", second.result.stderr)
            tool.send_signal(signal.SIGINT)
            self.assertEqual(tool.wait(60), 0)

    def test_a_program_that_was_started_to_be_recorded_is_not_attached_to(self):
        refusal = "another heap_profile records it; end that one first"
        with (tempfile.TemporaryDirectory() as directory,
              Running([HEAP_PROFILE, "-q", "--no-report", "-o", os.path.join(directory, "out"), "--", program("patient"), "1"],
                      stdin=subprocess.PIPE) as first):
            pid = child_named(first.pid, "patient")
            second = Attached(pid, 50)
            doctor = subprocess.run([HEAP_PROFILE, "doctor", "-p", str(pid)], capture_output=True, text=True)
            first.process.stdin.write("q")
            first.process.stdin.flush()
            self.assertEqual(first.process.wait(60), 0)
        self.assertNotEqual(second.result.returncode, 0)
        self.assertIn(f"cannot attach to process {pid}: {refusal}", second.result.stderr)
        self.assertEqual(doctor.returncode, 1)
        self.assertIn(f"  no    attach to it: it is recorded\n        {refusal}\n", doctor.stdout)
        self.assertNotIn("attached to before", doctor.stdout)
        self.assertNotIn("no hook for", doctor.stdout)

    def test_two_engines_that_attach_at_once_again_and_again_do_no_harm(self):
        with storm(6) as target:
            recorded = []

            def attach():
                while target.process.poll() is None:
                    result = Attached(target.pid, 20, ["-q"]).result
                    recorded.append(result.returncode == 0)
                    if result.returncode != 0 and target.process.poll() is None:
                        self.assertRegex(result.stderr, "another heap_profile|has ended|has just ended|no such process|try again")

            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                for engine in [pool.submit(attach) for _ in range(2)]:
                    engine.result()
            self.assertEqual(target.process.wait(60), 0, target.process.stdout.read())
            self.assertIn(True, recorded)

    def test_a_statically_linked_program(self):
        with Running([program("static_storm"), str(LONG_S), "static"]) as target:
            attached = Attached(target.pid, 100)
            self.assertEqual(attached.result.returncode, 0, attached.result.stderr)
            self.assertGreater(attached.stats["alloc_calls"], 0)
            self.assertEqual(changed_code_bytes(target.pid), 0)

    @unittest.skipUnless(os.path.exists(program("exits_musl_static")), "no musl-gcc here")
    def test_a_static_program_without_free(self):
        """musl links none into a program that frees nothing."""
        with Running([program("exits_musl_static"), "grow"]) as target:
            attached = Attached(target.pid, 100, ["-i", "1"])
            self.assertEqual(attached.result.returncode, 0, attached.result.stderr)
            self.assertGreater(attached.stats["alloc_calls"], 0)
            self.assertIn("kept_block", attached.result.stderr)
            self.assertEqual(changed_code_bytes(target.pid), 0)

    def test_a_stopped_process_stays_stopped(self):
        with storm(LONG_S) as target:
            self.attach_while_stopped(target)

    # What was asked to stop before it had had a processor came no further: half of the attempts failed.
    def test_a_stopped_process_is_given_time_among_others(self):
        with contextlib.ExitStack() as others:
            for _ in range(4 * os.cpu_count()):
                other = subprocess.Popen(["sh", "-c", "while :; do :; done"])
                others.callback(other.communicate)
                others.callback(other.kill)
            for _ in range(3):
                with storm(LONG_S) as target:
                    self.attach_while_stopped(target)

    def attach_while_stopped(self, target):
        os.kill(target.pid, signal.SIGSTOP)
        wait_until(lambda: state_of(target.pid) == "T")
        attached = Attached(target.pid, 50, ["-q"])
        self.assertEqual(attached.result.returncode, 4, attached.result.stderr)
        wait_until(lambda: state_of(target.pid) == "T")
        self.assertEqual(changed_code_bytes(target.pid), 0)
        os.kill(target.pid, signal.SIGCONT)
        wait_until(lambda: state_of(target.pid) != "T")

    def test_reasons_are_given(self):
        self.assertIn("there is no such process", Attached(2 ** 22 - 1, 50).result.stderr)
        busybox = shutil.which("busybox")
        if busybox:
            with subprocess.Popen([busybox, "sleep", "30"]) as process:
                wait_until(lambda: os.readlink(f"/proc/{process.pid}/exe") == os.path.realpath(busybox))
                self.assertIn("symbols are stripped", Attached(process.pid, 50).result.stderr)
                process.kill()
        with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(30)"]) as process:
            wait_until(lambda: "/libc" in maps_of(process.pid))
            doctor = subprocess.run([HEAP_PROFILE, "doctor", "-p", str(process.pid)], capture_output=True, text=True)
            self.assertIn("allocator in", doctor.stdout)
            process.kill()
        with subprocess.Popen(["sleep", "30"]) as process:
            silent = Attached(process.pid, 50).result.stderr
            self.assertIn("called no allocation function while", silent)
            self.assertNotIn("not recorded", silent)
            process.kill()


@unittest.skipUnless(MAY_ATTACH and MAY_CATCH, "watching for new processes is not allowed here")
class CatchTest(unittest.TestCase):
    def caught(self, command, name, times=1, env=None):
        """Calls of each process that a recording by name catches."""
        with Engine() as engine, tempfile.TemporaryDirectory() as directory:
            out = os.path.join(directory, "out")
            tool = engine.tool("-n", name, "-i", "1", "-o", out, stderr=subprocess.PIPE, text=True)
            while "Profiling active" not in (line := tool.stderr.readline()):
                self.assertTrue(line)
            for _ in range(times):
                self.assertEqual(subprocess.run(command, env=env, stdout=subprocess.DEVNULL).returncode, 0)
            tool.send_signal(signal.SIGINT)
            _, errors = tool.communicate(timeout=60)
            return [Pprof(path).total("alloc_objects") for path in glob.glob(os.path.join(out, "heap_dump.*"))], errors

    def test_every_start_is_recorded_from_its_first_allocation(self):
        expected = run([program("first_allocations")], ["-i", "1"]).main.total("alloc_objects")
        self.assertGreater(expected, 1000)
        counts, errors = self.caught([program("first_allocations")], "first_allocations", times=5)
        self.assertEqual(counts, [expected] * 5, errors)

    def test_one_watch_serves_all_recordings_by_name(self):
        with Engine() as engine:
            first = Recording(engine, ["-n", "no_such_program"]).wait_active()
            second = Recording(engine, ["-n", "first_allocations"]).wait_active()
            third = Recording(engine, ["-n", "fork_life"]).wait_active()
            gate = child_named(engine.service.pid, GATE)
            self.assertEqual([len(fanotify_marks(pid)) for pid in (engine.service.pid, gate)], [0, 1])
            self.assertGreater(len(fanotify_marks(gate)[0]), 0)
            first.finish()
            subprocess.run([program("first_allocations")], check=True)
            self.assertEqual([len(second.finish().pprofs), len(third.finish().pprofs)], [1, 0], second.stderr)
            wait_until(lambda: fanotify_marks(gate) == [[]])
            subprocess.run([program("first_allocations")], check=True)  # nobody has to give leave any more

    def test_children_of_one_that_was_caught_are_counted_from_their_start(self):
        with Engine() as engine:
            recording = Recording(engine, ["-n", "fork_life", "-i", "1"]).wait_active()
            with subprocess.Popen([program("fork_life"), "going"], stdin=subprocess.PIPE) as parent:
                wait_until(lambda: len(dumped_now(engine, recording)) == 2)
                parent.stdin.close()
            recording.finish()
            dumps = [dump for packet in recording.trace.packet for dump in packet.profile_packet.process_dumps]
            # What was due before the engine had reached a child is in no sample, and told.
            for dump in dumps:
                self.assertEqual(dump.from_startup, dump.quality.unsampled_calls == 0, recording.stderr)
            self.assertTrue(all(dump.from_startup for dump in dumps if dump.pid == parent.pid), recording.stderr)
            self.assertNotRegex(recording.stderr, "attached (to )?while")

    def test_of_two_recordings_that_wait_for_a_name_one_gets_the_process(self):
        with Engine() as engine:
            both = [Recording(engine, ["-n", "first_allocations"]).wait_active() for _ in range(2)]
            subprocess.run([program("first_allocations")], check=True)
            got, other = sorted((recording.finish() for recording in both), key=lambda r: -len(r.pprofs))
            self.assertEqual([len(got.pprofs), len(other.pprofs)], [1, 0])
            self.assertIn("cannot attach to process", other.stderr)

    def test_one_that_reports_to_another_heapprofd_is_named(self):
        with Engine() as other:
            counts, errors = self.caught([program("first_allocations")], "first_allocations",
                                         env={**os.environ, **other.env, "LD_PRELOAD": PRELOAD})
        self.assertEqual(counts, [])
        self.assertIn(f" from its start: it reports to the heapprofd in {other.directory}; ask that one, or", errors)

    def test_scripts_are_caught_by_their_own_name(self):
        with tempfile.TemporaryDirectory() as directory:
            path = script(directory, "some_script", PERL_SCRIPT)
            counts, errors = self.caught([path], "some_script")
            self.assertEqual(len(counts), 1, errors)
            self.assertGreater(counts[0], 1000, errors)

    # The kernel lets nobody trace it while it waits for leave to open that.
    def test_scripts_are_caught_by_the_name_of_their_interpreter(self):
        with tempfile.TemporaryDirectory() as directory:
            # Of a name of its own: others on this machine may run perl.
            own_perl = shutil.copy("/usr/bin/perl", os.path.join(directory, "own_perl"))
            path = script(directory, "some_script", PERL_SCRIPT.replace("/usr/bin/perl", own_perl))
            counts, errors = self.caught([path], "own_perl", times=5)
            # It may have ended by then, on a busy machine.
            self.assertEqual(len(counts) + errors.count("it had ended when it could be traced"), 5, errors)
            self.assertGreater(min(counts), 1000, errors)

    def test_an_exec_that_fails_is_let_go_at_once(self):
        with tempfile.TemporaryDirectory() as directory:
            path = script(directory, "some_script", "exit 7\n")
            with Engine() as engine:
                recording = Recording(engine, ["-n", "some_script"]).wait_active()
                # The shell runs by itself what the kernel does not know.
                self.assertEqual(subprocess.run(["sh", "-c", f"{path}; exit $?"]).returncode, 7)
                recording.finish()
                self.assertIn("nothing recorded", recording.stderr)
                self.assertNotIn("exec took", recording.stderr)


if __name__ == "__main__":
    unittest.main()
