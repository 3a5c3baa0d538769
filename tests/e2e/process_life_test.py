"""How processes begin and end: children, exits, signals."""

import json
import os
import signal
import subprocess
import tempfile
import unittest

from profile_run import HEAP_PROFILE, Started, program, run


# A wait for a profiler that stands still ends after a second; machines are busy.
LONGEST_MS = 2500


class StoppedProfiler(unittest.TestCase):
    def pauses(self, mode, *options):
        """The result, the longest pause in ms, the number of pauses of more than 0.7 s."""
        result = run([program("pauses"), mode], ["-i", "1", *options])
        self.assertEqual(result.exit_code, 0, result.stderr)
        longest, count = result.stdout.split()
        return result, int(longest), int(count)

    def test_it_costs_each_thread_at_most_one_pause_and_what_is_lost_is_counted(self):
        result, longest, count = self.pauses("threads", "--shmem-size", "65536")
        self.assertLess(longest, LONGEST_MS)
        self.assertLessEqual(count, 3)
        self.assertRegex(result.stderr, r"! \d+ records \(\d+ samples\) did not fit into the buffer, though the program waited")

    def test_a_given_time_is_kept(self):
        result, longest, count = self.pauses("threads", "--shmem-size", "65536", "--block-client-timeout", "1000")
        self.assertEqual(count, 0, longest)
        self.assertIn("did not fit", result.stderr)

    def test_a_program_that_starts_meanwhile_waits_a_second_and_is_named(self):
        result, longest, _ = self.pauses("start")
        self.assertLess(longest, LONGEST_MS)
        self.assertRegex(result.stderr, r"! 1 program was not recorded \(/bin/true\): ended, or waiting no longer")

    def test_forked_children_that_allocate_meanwhile_wait_once_each_and_are_counted(self):
        result, longest, _ = self.pauses("forks")
        self.assertLess(longest, LONGEST_MS)
        self.assertRegex(result.stderr, r"! 3 programs were not recorded .*: ended, or waiting no longer")


class ProcessLife(unittest.TestCase):
    def test_every_way_to_exit_keeps_all_data_and_the_exit_code(self):
        for way, code in [("return", 7), ("exit", 7), ("_exit", 7), ("quick_exit", 7),
                          ("abort", 128 + signal.SIGABRT), ("sigkill", 128 + signal.SIGKILL),
                          ("sigsegv", 128 + signal.SIGSEGV)]:
            with self.subTest(way):
                result = run([program("exits"), way], ["-i", "1"])
                self.assertEqual(result.exit_code, code, result.stderr)
                self.assertEqual(result.main.of("kept_block")["space"], 1000 * 1000)

    def test_the_end_is_noticed_where_that_of_children_is_ignored(self):
        ended = subprocess.run([HEAP_PROFILE, "-q", "-i", "1", "--no-report", "-o", os.path.join(self.enterContext(tempfile.TemporaryDirectory()), "o"),
                                "--", "/bin/echo", "a"], preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN), capture_output=True,
                               text=True, timeout=60, check=False)
        self.assertEqual((ended.returncode, ended.stdout), (0, "a\n"), ended.stderr)

    def test_children_have_profiles_of_their_own(self):
        result = run([program("forker")], ["-i", "1"])
        self.assertEqual((result.exit_code, result.stdout), (0, "forker ok\n"), result.stderr)
        parent = result.main
        self.assertEqual(parent.of("parent_block")["space"], 1000 * 1000)
        self.assertEqual(parent.of("shared_block")["space"], 20 * 3000)
        self.assertEqual(parent.of("child_block")["space"], 0)
        children = sorted(p.of("child_block")["space"] for p in result.pprofs if p is not parent)
        self.assertEqual(children, [200000, 200000, 1000000])

    def test_forked_children_with_threads_are_recorded_wholly(self):
        result = run([program("fork_life"), "threads"], ["-i", "1"])
        self.assertEqual((result.exit_code, result.stdout), (0, "children ok\n"), result.stderr)
        children = [p.of("thread_block")["space"] for p in result.pprofs]
        self.assertEqual(sorted(children, reverse=True)[:10], [7 * 300 * 1000] * 10)

    def test_forked_children_may_fork_while_they_begin_to_be_recorded(self):
        result = run([program("fork_life"), "again"], ["-i", "1"])
        self.assertEqual((result.exit_code, result.stdout), (0, "children ok\n"), result.stderr)
        blocks = [p.of("thread_block")["space"] for p in result.pprofs]
        self.assertEqual(sorted(blocks, reverse=True), [6 * 300 * 1000] * 10 + [1000] * 50 + [0] * (len(blocks) - 60))

    def test_many_processes_one_after_the_other_need_few_descriptors(self):
        count = 200
        program = f"for i in $(seq {count}); do ls / >/dev/null; done"
        with tempfile.TemporaryDirectory() as folder:
            script = f'ulimit -n 128; exec "{HEAP_PROFILE}" -i 1 -o {folder}/out -- sh -c "$0"'
            result = subprocess.run(["sh", "-c", script, program], capture_output=True, text=True, check=False)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertNotIn("not recorded", result.stderr)
            profiles = [name for name in os.listdir(f"{folder}/out") if name.endswith(".pb.gz")]
            self.assertGreaterEqual(len(profiles), count, result.stderr)

    def test_children_that_outlive_their_parents_need_few_descriptors(self):
        count = 200
        # The end of its standard output says that the child is gone, too.
        program = f"for i in $(seq {count}); do bash -c '(x=$(echo 1)) & :' | cat; done"
        with tempfile.TemporaryDirectory() as folder:
            stats = f"{folder}/stats"
            script = f'ulimit -n 128; exec "{HEAP_PROFILE}" -i 1000000000 -o {folder}/out -- bash -c "$0"'
            result = subprocess.run(["sh", "-c", script, program], capture_output=True, text=True, check=False,
                                    env={**os.environ, "HEAPPROFD_STATS_JSON": stats})
            self.assertNotIn("not recorded", result.stderr)
            with open(stats) as file:
                self.assertGreaterEqual(json.load(file)["unsampled_children"], count, result.stderr)

    def test_a_child_that_outlives_its_parent_is_recorded(self):
        result = run(["/bin/sh", "-c", f"{program('fork_life')} orphan | cat"], ["-i", "1"])
        self.assertEqual((result.exit_code, result.stdout), (0, "orphan ok\n"), result.stderr)
        self.assertEqual(sum(p.of("orphan_block")["space"] for p in result.pprofs), 1000 * 1000)

    def test_a_program_that_goes_on_in_the_background_is_waited_for(self):
        result = run([program("fork_life"), "orphan"], ["-i", "1"])
        self.assertEqual((result.exit_code, result.stdout), (0, "orphan ok\n"), result.stderr)
        self.assertIn("still recording 1 process", result.stderr)
        self.assertEqual(sum(p.of("orphan_block")["space"] for p in result.pprofs), 1000 * 1000)

    def test_a_background_process_is_not_waited_for_when_children_are_not_wanted(self):
        result = run([program("fork_life"), "orphan"], ["-i", "1", "--no-children"])
        self.assertEqual(result.exit_code, 0, result.stderr)
        self.assertNotIn("still recording", result.stderr)

    def test_children_are_left_alone_when_not_wanted(self):
        result = run([program("forker")], ["-i", "1", "--no-children"])
        self.assertEqual(result.exit_code, 0, result.stderr)
        self.assertEqual(len(result.pprofs), 1)
        self.assertEqual(result.main.of("parent_block")["space"], 1000 * 1000)

    def test_an_interrupt_ends_the_program_and_keeps_the_profile(self):
        started = Started([program("exits"), "wait"], ["-i", "1"])
        self.assertEqual(started.process.stdout.readline(), "waiting\n")
        started.process.send_signal(signal.SIGINT)
        result = started.finish()
        self.assertEqual(result.exit_code, 128 + signal.SIGINT, result.stderr)
        self.assertEqual(result.main.of("kept_block")["space"], 1000 * 1000)

    def test_a_small_buffer_blocks_and_loses_nothing(self):
        result = run([program("known_stacks"), "3"], ["-i", "1", "--shmem-size", "65536"])
        self.assertEqual(result.exit_code, 0, result.stderr)
        self.assertEqual(result.main.of("leaks_all_small")["objects"], 9000)

    def test_a_full_buffer_counts_what_it_drops(self):
        result = run([program("known_stacks"), "30"], ["-i", "1", "--shmem-size", "16384", "--no-block-client"])
        self.assertEqual(result.exit_code, 0, result.stderr)
        self.assertRegex(result.stderr, r"records .* did not fit|interval was raised")


if __name__ == "__main__":
    unittest.main()
