"""heapprofd: many sessions, programs that lie dormant, and what happens when it is killed."""

import os
import signal
import subprocess
import tempfile
import unittest

from profile_run import HEAP_PROFILE
from service_run import COMPAT, Patient, Place, Recording, live_bytes, wait_for

ROUND = 1000 * 1000  # bytes that patient keeps at each letter a


class ServiceTest(unittest.TestCase):
    def setUp(self):
        self.place = Place()
        self.addCleanup(self.place.close)

    def patient(self, *args, **kwargs):
        patient = Patient(self.place, *args, **kwargs)
        self.addCleanup(patient.kill)
        return patient

    def record(self, *options, **kwargs):
        return Recording(self.place, options, **kwargs)


class Sessions(ServiceTest):
    def setUp(self):
        super().setUp()
        self.place.start()

    def test_a_program_is_recorded_by_name_from_its_first_allocation(self):
        recording = self.record("-n", "patient", "-i", "1").wait_active()
        patient = self.patient().wait_ready()
        patient.tell("a")
        patient.end()
        recording.finish()
        self.assertEqual(recording.exit_code, 0, recording.stderr)
        self.assertEqual(recording.pprofs[0].of("kept_block")["space"], ROUND)
        dump = recording.dumps_of(patient.pid)[-1]
        self.assertTrue(dump.from_startup and dump.disconnected)
        self.assertIn("kept_block", recording.stderr)

    def test_a_dormant_program_wakes_at_its_next_allocation(self):
        patient = self.patient().wait_ready()
        patient.tell("a")
        recording = self.record("-p", str(patient.pid), "-i", "1").wait_active()
        patient.tell("a")
        recording.finish()
        self.assertEqual(recording.pprofs[0].of("kept_block")["space"], ROUND)  # the second round only
        dump = recording.dumps_of(patient.pid)[-1]
        self.assertFalse(dump.from_startup or dump.disconnected)
        self.assertEqual(patient.end(), 0)

    def test_a_program_is_recorded_again_and_again(self):
        patient = self.patient().wait_ready()
        for size in ["8192", "1M", "8192"]:
            recording = self.record("-p", str(patient.pid), "-i", "1", "--shmem-size", size).wait_active()
            self.assertEqual(patient.tell("a"), "kept")
            recording.finish()
            self.assertEqual(recording.exit_code, 0, recording.stderr)
            self.assertEqual(recording.pprofs[0].of("kept_block")["space"], ROUND)
            self.assertEqual(patient.tell("a"), "kept")
        self.assertEqual(patient.tell("f"), "freed")
        self.assertEqual(patient.end(), 0)

    def test_a_recording_misses_nothing_when_the_program_has_not_noticed_the_end_of_the_last(self):
        patient = self.patient().wait_ready()
        for options in (["-p", str(patient.pid)], ["-p", str(patient.pid)], ["-n", "patient"]):
            recording = self.record(*options, "-i", "1").wait_active()
            patient.tell("a")
            recording.finish()
            self.assertEqual(recording.exit_code, 0, recording.stderr)
            self.assertEqual(recording.pprofs[0].of("kept_block")["space"], ROUND)
        self.assertEqual(patient.end(), 0)

    def test_programs_that_slept_through_it_are_not_said_to_be_missing(self):
        patients = [self.patient().wait_ready(), self.patient().wait_ready()]
        for options, said in ((["-p", str(patients[0].pid)], "nothing recorded: 1 process that was asked for has the profiling library in it and "
                                                             "never reported, which it does when it allocates; record for longer"),
                              (["-n", "patient"], "nothing recorded: 2 processes that were asked for have the profiling library in them and "
                                                  "never reported, which they do when they allocate; record for longer")):
            recording = self.record(*options).wait_active()
            recording.finish()
            self.assertEqual(recording.exit_code, 4, recording.stderr)
            self.assertIn(said, recording.stderr)
        for patient in patients:
            self.assertEqual(patient.end(), 0)

    def test_running_and_starting_processes_can_be_left_out(self):
        old = self.patient().wait_ready()
        no_running = self.record("-n", "patient", "-i", "1", "--no-running").wait_active()
        new = self.patient().wait_ready()
        for patient in (old, new):
            patient.tell("a")
        no_running.finish()
        self.assertEqual(no_running.dumps_of(old.pid), [])
        self.assertEqual(len(no_running.dumps_of(new.pid)), 1)
        no_startup = self.record("-n", "patient", "-i", "1", "--no-startup").wait_active()
        newest = self.patient().wait_ready()
        for patient in (old, newest):
            patient.tell("a")
        no_startup.finish()
        self.assertEqual(len(no_startup.dumps_of(old.pid)), 1)
        self.assertEqual(no_startup.dumps_of(newest.pid), [])

    def test_names_are_patterns_and_others_stay_dormant(self):
        recording = self.record("-n", "pat*t,nothing", "-i", "1").wait_active()
        patient = self.patient().wait_ready()
        other = self.patient(["/bin/sh", "-c", "echo ready; read x"]).wait_ready()
        patient.tell("a")
        recording.finish()
        self.assertEqual(recording.dumps_of(other.pid), [])
        self.assertEqual(len(recording.dumps_of(patient.pid)), 1)

    def test_a_process_that_another_session_has_is_rejected(self):
        first = self.record("-n", "patient", "-i", "1").wait_active()
        patient = self.patient().wait_ready()
        second = self.record("-p", str(patient.pid), "-i", "1").wait_active()
        patient.tell("a")
        second.finish()
        first.finish()
        self.assertEqual(first.pprofs[0].of("kept_block")["space"], ROUND)
        (dump,) = second.dumps_of(patient.pid)
        self.assertTrue(dump.rejected_concurrent)
        self.assertEqual(len(dump.samples), 0)
        self.assertIn("another session", dump.reason)
        self.assertIn("another session", second.stderr)

    def test_children_have_profiles_of_their_own(self):
        recording = self.record("-n", "patient", "-i", "1").wait_active()
        patient = self.patient().wait_ready()
        self.assertEqual(patient.tell("c"), "child")
        recording.finish()
        children = {p.pid for p in recording.pprofs} - {patient.pid}
        self.assertEqual(len(children), 1)
        child = next(p for p in recording.pprofs if p.pid in children)
        self.assertEqual(child.of("kept_block")["space"], ROUND)
        os.kill(children.pop(), signal.SIGKILL)

    def test_a_program_that_waits_for_its_session_misses_nothing(self):
        patient = self.patient(env={"PERFETTO_HEAPPROFD_BLOCKING_INIT": "1"})
        recording = self.record("-n", "patient", "-i", "1").wait_active()
        patient.wait_ready().tell("a")
        recording.finish()
        self.assertTrue(recording.dumps_of(patient.pid)[0].from_startup)
        self.assertEqual(recording.pprofs[0].of("kept_block")["space"], ROUND)

    def test_duration_ends_the_recording_and_not_the_program(self):
        patient = self.patient().wait_ready()
        recording = self.record("-p", str(patient.pid), "-i", "1", "-d", "300").wait_active()
        patient.tell("a")
        recording.finish(stop=None)
        self.assertEqual(recording.exit_code, 0, recording.stderr)
        self.assertEqual(recording.pprofs[0].of("kept_block")["space"], ROUND)
        self.assertEqual(patient.tell("a"), "kept")
        self.assertEqual(patient.end(), 0)

    def test_files_are_for_their_owner_only(self):
        recording = self.record("-n", "patient", "-i", "1", "-c", "50").wait_active()
        patient = self.patient().wait_ready()
        patient.tell("a")
        recording.finish()
        self.assertEqual(set(recording.files.values()), {0o600})

    def test_a_process_that_is_not_there_is_told_at_once(self):
        gone = subprocess.Popen(["/bin/true"])
        gone.wait()
        result = self.record("-p", str(gone.pid)).finish(None)
        self.assertEqual(result.exit_code, 1)
        self.assertIn("there is no such process", result.stderr)

    def test_a_second_service_in_the_same_place_is_refused(self):
        second = subprocess.run([os.path.join(COMPAT, "heapprofd")], env={**os.environ, **self.place.env},
                                capture_output=True, text=True)
        self.assertEqual(second.returncode, 1)
        self.assertIn("another heapprofd runs", second.stderr)

    def test_nonsense_at_the_socket_holds_nobody_up(self):
        import socket
        silent = socket.socket(socket.AF_UNIX)
        silent.connect(os.path.join(self.place.directory, "socket"))
        with socket.socket(socket.AF_UNIX) as loud:
            loud.connect(os.path.join(self.place.directory, "socket"))
            loud.sendall(b"heapct01" + b"\xff" * 1000)
        recording = self.record("-n", "patient", "-i", "1").wait_active()
        patient = self.patient().wait_ready()
        patient.tell("a")
        recording.finish()
        silent.close()
        self.assertEqual(recording.pprofs[0].of("kept_block")["space"], ROUND)


class Snapshots(ServiceTest):
    def setUp(self):
        super().setUp()
        self.place.start()
        self.recording = self.record("-n", "patient", "-i", "1").wait_active()
        self.subject = self.patient().wait_ready()

    def wait_for_dumps(self, count):
        path = os.path.join(self.recording.directory, "raw-trace")

        def dumped():
            import trace_pb2
            trace = trace_pb2.Trace()
            with open(path, "rb") as file:
                try:
                    trace.ParseFromString(file.read())
                except Exception:  # in the middle of a write
                    return False
            return sum(len(p.profile_packet.process_dumps) for p in trace.packet) >= count

        wait_for(dumped, f"no {count} dumps")

    def check(self, labels):
        patient = self.subject
        patient.tell("a")
        self.recording.finish()
        dumps = self.recording.dumps_of(patient.pid)
        self.assertEqual([d.label for d in dumps], labels)
        self.assertEqual(len(self.recording.pprofs), len(labels))
        for i, pprof in enumerate(self.recording.pprofs):
            self.assertEqual(pprof.of("kept_block")["space"], (i + 1) * ROUND)
        for earlier, later in zip(dumps, dumps[1:]):
            self.assertEqual(later.start_timestamp, earlier.timestamp)

    def test_sigusr1_to_the_service_adds_a_dump(self):
        self.subject.tell("a")
        self.place.service.send_signal(signal.SIGUSR1)
        self.wait_for_dumps(1)
        self.check(["", ""])

    def test_sigusr1_to_heap_profile_adds_a_dump(self):
        self.subject.tell("a")
        self.recording.process.send_signal(signal.SIGUSR1)
        self.wait_for_dumps(1)
        self.check(["", ""])

    def test_marks_have_names(self):
        for name in ("one", "two"):
            self.subject.tell("a")
            mark = subprocess.run([HEAP_PROFILE, "mark", name], env={**os.environ, **self.place.env},
                                  capture_output=True, text=True)
            self.assertEqual(mark.returncode, 0, mark.stderr)
        self.check(["one", "two", ""])
        self.assertIn("dump: one", self.recording.pprofs[0].comments)


class Killed(ServiceTest):
    def test_programs_outlive_a_killed_service_and_the_next_one_finds_them(self):
        self.place.start()
        first = self.record("-n", "patient", "-i", "1", "--shmem-size", "8192").wait_active()
        patient = self.patient().wait_ready()
        patient.tell("a")
        self.place.kill()
        # The ring is small and nobody drains it: without notice, this would wait for ever.
        self.assertEqual(patient.tell("a"), "kept")
        first.finish(stop=None)
        self.assertEqual(first.exit_code, 1)
        self.assertIn("the service ended", first.stderr)
        self.place.start()
        second = self.record("-p", str(patient.pid), "-i", "1").wait_active()
        patient.tell("a")
        second.finish()
        self.assertEqual(second.exit_code, 0, second.stderr)
        self.assertEqual(second.pprofs[0].of("kept_block")["space"], ROUND)
        self.assertEqual(patient.end(), 0)

    def test_terminate_finishes_all_recordings(self):
        self.place.start()
        recording = self.record("-n", "patient", "-i", "1").wait_active()
        patient = self.patient().wait_ready()
        patient.tell("a")
        self.place.service.terminate()
        recording.finish(stop=None)
        self.assertEqual(recording.exit_code, 0, recording.stderr)
        self.assertEqual(recording.pprofs[0].of("kept_block")["space"], ROUND)
        self.assertEqual(patient.tell("a"), "kept")

    def test_without_a_service_heap_profile_starts_one_that_leaves_again(self):
        recording = self.record("-n", "patient", "-i", "1").wait_active()
        patient = self.patient().wait_ready()
        patient.tell("a")
        recording.finish()
        self.assertEqual(recording.pprofs[0].of("kept_block")["space"], ROUND)
        wait_for(lambda: not os.path.exists(os.path.join(self.place.directory, "socket")), "the service stays")

    def test_no_start_wants_a_service_that_runs(self):
        result = self.record("-n", "patient", "--no-start").finish(None)
        self.assertEqual(result.exit_code, 1)
        self.assertIn("no heapprofd runs", result.stderr)


class SeedCommandLines(ServiceTest):
    def test_the_recipe_for_linux_runs_as_written(self):
        self.place.start()
        with tempfile.TemporaryDirectory() as home:
            trace = os.path.join(home, "heapprofd-trace")
            env = {**os.environ, **self.place.env, "PATH": COMPAT + ":" + os.environ["PATH"]}
            shell = subprocess.Popen(
                ["/bin/sh", "-c", "heap_profile -n patient --print-config | exec perfetto -c - --txt -o " + trace],
                env=env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            wait_for(lambda: os.path.exists(trace) and os.path.getsize(trace) > 0, "no trace")
            patient = self.patient().wait_ready()
            patient.tell("a")
            found = subprocess.run(["pgrep", "-P", str(shell.pid), "perfetto"], capture_output=True, text=True)
            pid = int(found.stdout.split()[0]) if found.stdout else shell.pid
            os.kill(pid, signal.SIGINT)
            _, errors = shell.communicate(timeout=60)
            self.assertIn("Wrote", errors)
            import trace_pb2
            parsed = trace_pb2.Trace()
            with open(trace, "rb") as file:
                parsed.ParseFromString(file.read())
            dumps = [d for p in parsed.packet for d in p.profile_packet.process_dumps]
            (dump,) = [d for d in dumps if d.pid == patient.pid]  # others of this name may run
            self.assertGreater(live_bytes(dump), ROUND / 2)


if __name__ == "__main__":
    unittest.main()
