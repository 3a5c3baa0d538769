"""Running programs that are linked with libheapprofd_client and not preloaded, switched on by a service."""

import os
import pathlib
import subprocess
import unittest

import wake_page
from profile_run import program
from running_process import MAY_ATTACH, MAY_CATCH
from service_run import DEADLINE_S, Place, Recording, wait_for

EVERYTHING = ["--all-heaps", "-i", "1"]
MALLORY = 61001 if MAY_ATTACH else None  # somebody else, where there can be


class Switched:
    """tests/programs/switched, started by nobody's command."""

    def __init__(self, place, name):
        self.process = subprocess.Popen([program(name)], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env={**os.environ, **place.env})
        self.pid = self.process.pid
        assert self.process.stdout.readline() == "ready\n"

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()

    def tell(self, letter):
        self.process.stdin.write(letter)
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def state(self):
        """(calls of the enabled callback, of the disabled one, last interval)"""
        return tuple(int(word) for word in self.tell("s").split())[:3]

    def is_sampled(self):
        """Reports once more; True when something of it was recorded."""
        before = int(self.tell("s").split()[3])
        self.tell("a")
        return int(self.tell("s").split()[3]) > before

    def end(self):
        self.process.communicate(timeout=DEADLINE_S)
        return self.process.returncode


class SwitchOn(unittest.TestCase):
    def setUp(self):
        self.place = Place()
        self.addCleanup(self.place.close)

    def switched(self, name="switched"):
        target = Switched(self.place, name)
        self.addCleanup(target.close)
        return target

    def record(self, target, options=EVERYTHING):
        recording = Recording(self.place, ["-p", str(target.pid), *options]).wait_active()
        self.addCleanup(recording.process.stdout.close)
        self.addCleanup(recording.process.stderr.close)
        return recording

    def space(self, recording, heap):
        return sum(p.total("space") for p in recording.pprofs if p.heap == heap)

    def check_session(self, target, sessions):
        """One recording from beginning to end, of a program that has seen `sessions` before."""
        recording = self.record(target)
        # Nothing is reported until the callback says so.
        wait_for(lambda: target.state()[0] == sessions + 1, "the enabled callback was not called")
        self.assertEqual(target.state(), (sessions + 1, sessions, 1))
        target.tell("a")
        recording.finish()
        self.assertEqual(recording.exit_code, 0, recording.stderr)
        self.assertEqual({p.heap for p in recording.pprofs}, {"com.example.told", "com.example.silent"})
        for heap in ("com.example.told", "com.example.silent"):
            self.assertEqual(self.space(recording, heap), 5000)
        wait_for(lambda: target.state()[1] == sessions + 1, "the disabled callback was not called")

    def test_a_program_that_began_before_any_service_is_recorded_again_and_again(self):
        target = self.switched()
        target.tell("a")  # for nobody
        for sessions in range(3):
            self.check_session(target, sessions)
        self.assertEqual(target.state(), (3, 3, 1))
        self.assertEqual(target.end(), 0)

    def test_a_program_finds_the_service_that_runs(self):
        self.place.start()
        target = self.switched()
        self.check_session(target, 0)
        self.check_session(target, 1)
        self.assertEqual(target.end(), 0)

    def test_a_program_is_found_by_its_name(self):
        target = self.switched()
        recording = Recording(self.place, ["-n", "switched", *EVERYTHING]).wait_active()
        wait_for(lambda: target.state()[0] == 1, "the enabled callback was not called")
        target.tell("a")
        target.end()
        recording.finish()
        self.assertEqual(self.space(recording, "com.example.told"), 5000)
        self.assertFalse(recording.dumps_of(target.pid)[0].from_startup)

    def test_heaps_have_their_own_intervals_and_only_those_asked_for_are_told(self):
        target = self.switched()
        recording = self.record(target, ["--heaps", "com.example.told=4"])
        wait_for(lambda: target.state()[0] == 1, "the enabled callback was not called")
        self.assertEqual(target.state(), (1, 0, 4))
        target.tell("a")
        recording.finish()
        self.assertEqual({p.heap for p in recording.pprofs}, {"com.example.told"})
        other = self.record(target, ["--heaps", "com.example.silent=1"])
        wait_for(lambda: target.state()[1] == 1, "the disabled callback was not called")
        wait_for(target.is_sampled, "the session was not joined")
        target.tell("a")
        other.finish()
        self.assertEqual({p.heap for p in other.pprofs}, {"com.example.silent"})
        self.assertGreater(self.space(other, "com.example.silent"), 5000)
        self.assertEqual(target.state(), (1, 1, 4))
        target.end()

    def test_a_killed_service_disables_the_heaps_and_the_next_one_enables_them(self):
        self.place.start()
        target = self.switched()
        recording = self.record(target)
        wait_for(lambda: target.state()[0] == 1, "the enabled callback was not called")
        self.place.kill()
        recording.finish(stop=None)
        wait_for(lambda: target.state()[1] == 1, "the disabled callback was not called")
        self.check_session(target, 1)
        target.end()

    def test_other_programs_recordings_do_not_touch_it(self):
        target = self.switched()
        other = self.switched()
        recording = self.record(other)
        wait_for(lambda: other.state()[0] == 1, "the enabled callback was not called")
        target.tell("a")
        recording.finish()
        self.assertEqual(target.state(), (0, 0, 0))
        self.assertEqual({p.pid for p in recording.pprofs}, set())
        target.end()
        other.end()

    def test_labels_that_were_pushed_before_the_session_are_there(self):
        target = self.switched()
        recording = self.record(target)
        wait_for(lambda: target.state()[0] == 1, "the enabled callback was not called")
        target.tell("l")
        recording.finish()
        profile = next(p for p in recording.pprofs if p.heap == "com.example.told")
        self.assertEqual(profile.by_label("space"), {(("kind", "late"), ("kind", "early")): 5000})
        target.end()

    def test_a_forked_child_has_a_profile_of_its_own(self):
        target = self.switched()
        recording = Recording(self.place, ["-n", "switched", *EVERYTHING]).wait_active()
        wait_for(lambda: target.state()[0] == 1, "the enabled callback was not called")
        target.tell("c")
        recording.finish()
        children = {p.pid for p in recording.pprofs} - {str(target.pid), target.pid}
        self.assertEqual(len(children), 1, recording.stderr)
        self.assertEqual(sum(p.total("space") for p in recording.pprofs if p.heap == "com.example.told"), 5000)
        self.assertEqual(target.state()[0], 1)
        target.end()

    def test_a_child_of_a_recorded_program_is_switched_on_by_later_sessions(self):
        target = self.switched()
        recording = self.record(target, ["--heaps", "com.example.silent=100000000"])  # too rare to be sampled
        wait_for(lambda: "memfd:heapprofd-ring" in pathlib.Path(f"/proc/{target.pid}/maps").read_text() or target.is_sampled(), "joined")
        target.tell("p")
        recording.finish()
        child = int(pathlib.Path(f"/proc/{target.pid}/task/{target.pid}/children").read_text())
        later = Recording(self.place, ["-p", str(child), *EVERYTHING]).wait_active()
        wait_for(target.is_sampled, "the session was not joined")
        later.finish()
        self.assertEqual({p.pid for p in later.pprofs}, {child})

    @unittest.skipUnless(wake_page.IS_WAITED_AT, "this kernel has no futex_waitv")
    def test_who_moves_the_waiting_thread_away_keeps_no_session_from_it(self):
        self.place.start()
        os.chmod(self.place.directory, 0o755)
        target = self.switched()
        wake_page.done_by(MALLORY, wake_page.move_one, self.place.directory)
        self.check_session(target, 0)
        self.assertEqual(target.end(), 0)

    @unittest.skipUnless(wake_page.IS_WAITED_AT, "this kernel has no futex_waitv")
    def test_who_wakes_the_waiting_thread_in_vain_does_so_at_its_own_pace(self):
        self.place.start()
        os.chmod(self.place.directory, 0o755)
        target = self.switched()
        seconds = wake_page.done_by(MALLORY, wake_page.seconds_of_wakes, self.place.directory, 5)
        self.assertGreater(seconds, 4 * 0.05)
        self.check_session(target, 0)
        self.assertEqual(target.end(), 0)

    def test_a_statically_linked_program_is_switched_on_too(self):
        target = self.switched("static_switched")
        self.check_session(target, 0)
        self.assertEqual(target.end(), 0)

    def check_malloc_alone(self, recording, target):
        for letter in "amam":  # what the library reports does not end the recording of malloc
            target.tell(letter)
        self.assertEqual(target.end(), 0)
        recording.finish()
        self.assertEqual({p.heap for p in recording.pprofs}, {"libc.malloc"}, recording.stderr)
        self.assertEqual(recording.pprofs[0].of("mallocs")["alloc_space"], 10000)

    @unittest.skipUnless(MAY_ATTACH, "attaching to every process is not allowed here")
    def test_malloc_alone_is_recorded_by_attaching(self):
        for name in ("switched", "static_switched"):
            with self.subTest(name):
                target = self.switched(name)
                self.check_malloc_alone(Recording(self.place, ["-p", str(target.pid), "-i", "1"]).wait_active(), target)

    @unittest.skipUnless(MAY_ATTACH and MAY_CATCH, "watching for new processes is not allowed here")
    def test_malloc_alone_is_recorded_from_the_start(self):
        recording = Recording(self.place, ["-n", "switched", "-i", "1"]).wait_active()
        self.check_malloc_alone(recording, self.switched())

    def test_malloc_beside_other_heaps_is_missed_and_it_is_said(self):
        target = self.switched()
        recording = self.record(target)
        target.tell("a")
        target.end()
        recording.finish()
        self.assertIn("malloc's heap was not recorded", recording.stderr)


if __name__ == "__main__":
    unittest.main()
