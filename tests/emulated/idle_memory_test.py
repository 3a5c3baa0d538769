"""What --idle-allocations tells of a program of which it is known what it touches, on a kernel that tracks idle pages
(tools/test_idle). Runs in a machine of its own."""

import json
import os
import pathlib
import signal
import subprocess
import tempfile
import unittest

BUILD = pathlib.Path(os.environ.get("BUILD_DIRECTORY", "/build"))
HEAP_PROFILE = BUILD / "src/cli/heap_profile"
PROGRAM = BUILD / "tests/programs/idle_memory"
THP = pathlib.Path("/sys/kernel/mm/transparent_hugepage")
NOBODY = 65534
END_S = 200
# The function that called the allocator has the parent of the sample's call site, and the whole figure of the last dump that
# knows one. With -c names are found after the dumps, and stand in a table of their own.
BY_FUNCTION = """select coalesce(symbol.name, frame.name), sum(estimate.idle_size) from heap_profile_estimate estimate
join stack_profile_callsite callsite on callsite.id = estimate.callsite_id
join stack_profile_callsite caller on caller.id = callsite.parent_id
join stack_profile_frame frame on frame.id = caller.frame_id
left join stack_profile_symbol symbol on symbol.symbol_set_id = frame.symbol_set_id
where estimate.dump_id = (select max(id) from heap_dump where idle_ts is not null) group by 1"""
DUMPS = "select idle_ts is not null, idle_unseen_size from heap_dump order by id"


def rows(trace, question):
    answer = subprocess.run([HEAP_PROFILE, "query", "--csv", "-Q", question, trace], check=True, capture_output=True, text=True, timeout=END_S)
    return [[word.strip('"') for word in line.split(",")] for line in answer.stdout.splitlines()[1:]]


def idle_of(trace):
    return {name: int(size) for name, size in rows(trace, BY_FUNCTION)}


class Recording:
    def __init__(self, *options, seconds=8, program=(), user=0):
        folder = tempfile.mkdtemp()  # the machine ends soon
        os.chmod(folder, 0o777)
        environment = dict(os.environ, HEAPPROFD_STATS_JSON=f"{folder}/stats")
        ended = subprocess.run([HEAP_PROFILE, "--no-report", "--idle-allocations", "-o", f"{folder}/out", *options, "--", PROGRAM,
                                str(seconds), *program], env=environment, capture_output=True, text=True, timeout=END_S, check=False,
                               user=user, group=user)
        self.code, self.stderr = ended.returncode, ended.stderr
        print(self.stderr)
        # What the program says: how much it does not touch.
        self.cold, self.striped = map(int, ended.stdout.split()[:2])
        self.trace = f"{folder}/out/raw-trace"
        self.figures = json.loads(pathlib.Path(folder, "stats").read_text())

    def idle(self):
        return idle_of(self.trace)

    def dumps(self):
        return rows(self.trace, DUMPS)


class Figures(unittest.TestCase):
    def setUp(self):
        # Pages stay where and as large as they are.
        (THP / "enabled").write_text("never")
        (THP / "khugepaged/defrag").write_text("0")

    def test_the_kernel_tells_every_page_of_this_machine(self):
        ram = [line.split("-")[1].split()[0] for line in pathlib.Path("/proc/iomem").read_text().splitlines() if "System RAM" in line]
        word = max(int(end, 16) for end in ram) // 4096 // 64
        with open("/sys/kernel/mm/page_idle/bitmap", "rb", buffering=0) as bitmap:
            bitmap.seek(word * 8)
            self.assertEqual(len(bitmap.read(8)), 8, "see EMULATOR of idle_machine.py")

    def check(self, recording):
        idle = recording.idle()
        self.assertEqual(idle["Cold"], recording.cold)
        self.assertEqual(idle["Striped"], recording.striped)
        self.assertLess(idle["Hot"], 4096)  # the end of the last page, if anything
        self.assertLessEqual(idle.get("Unwritten", 0), 4096)  # its header is written
        # Small ones are samples of 8,000,000 bytes, with a standard error of 181,000; some pages are those of others.
        self.assertAlmostEqual(idle["Small"], 8_000_000, delta=1_000_000)

    def test_what_is_not_touched_between_dumps_is_told_to_the_page(self):
        recording = Recording("-c", "5000", seconds=20)
        self.check(recording)
        known = recording.dumps()
        self.assertEqual(known[0][0], "0")  # nothing was marked before it
        self.assertEqual({row[0] for row in known[1:]}, {"1"})

    def test_the_end_alone_tells_it(self):
        recording = Recording(seconds=12)
        self.check(recording)
        # The program waits a second for the look at its end; where others keep the processor longer, the one before it is told.
        self.assertRegex(recording.stderr, r"idle memory: 7\d\.\d MiB of live 15[12] MiB were not touched (in the last \d|for \d.* until \d.* before the end)")
        self.assertIn("Top idle memory", recording.stderr)

    def test_what_was_never_written_could_not_be_looked_at(self):
        recording = Recording(seconds=12)
        unseen = recording.figures["idle_unseen_bytes"]
        self.assertGreater(unseen, (32 << 20) - 4096)
        self.assertLess(unseen, (32 << 20) + 500_000)
        self.assertIn("32.", recording.stderr[recording.stderr.index("were not touched"):])
        self.assertIn("MiB could not be looked at", recording.stderr)
        self.assertGreater(recording.figures["idle_bytes"], recording.cold + recording.striped)

    def test_a_sampled_recording_is_about_right(self):
        recording = Recording("-c", "5000", "-i", "100000", seconds=20)
        self.assertEqual(recording.idle()["Cold"], recording.cold)
        self.assertAlmostEqual(recording.idle()["Small"], 8_000_000, delta=4_000_000)

    def test_what_a_child_shares_is_not_looked_at(self):
        recording = Recording("-c", "5000", "--no-children", seconds=20, program=["fork"])
        self.assertEqual(recording.idle().get("Cold", 0), 0)
        self.assertGreater(int(recording.dumps()[-2][1]), recording.cold)

    def test_a_program_that_runs_is_looked_at_as_well(self):
        self.attach(user=0)

    def test_root_looks_at_another_users_program(self):
        self.attach(user=NOBODY)

    def attach(self, user):
        with tempfile.TemporaryDirectory() as folder, \
                subprocess.Popen([PROGRAM, str(END_S)], stdout=subprocess.PIPE, text=True, user=user, group=user) as program:
            cold = int(program.stdout.readline().split()[0])
            with subprocess.Popen([HEAP_PROFILE, "--no-report", "--idle-allocations", "-d", "15000", "-o", f"{folder}/out", "-p", str(program.pid)],
                                  stderr=subprocess.PIPE, text=True) as recording:
                while "Profiling active" not in recording.stderr.readline():
                    self.assertIsNone(recording.poll())
                program.send_signal(signal.SIGUSR1)
                said = recording.communicate(timeout=END_S)[1]
            program.kill()
            print(said)
            self.assertEqual(recording.returncode, 0)
            # What it had was there before.
            self.assertIn("idle memory: 48.0 MiB of live 48.0 MiB were not touched in the last", said)
            self.assertEqual(idle_of(f"{folder}/out/raw-trace"), {"Cold": cold})

    def test_a_short_recording_says_that_it_does_not_know(self):
        recording = Recording("-c", "60000", seconds=2)
        self.assertNotIn("idle_bytes", recording.figures)
        self.assertIn("idle memory: not known; there was no second look at it", recording.stderr)


class HugePages(unittest.TestCase):
    def setUp(self):
        (THP / "enabled").write_text("always")
        (THP / "khugepaged/defrag").write_text("0")

    def test_a_huge_page_is_one(self):
        recording = Recording("-c", "5000", seconds=20)
        idle = recording.idle()
        # Of each end one huge page at most has other neighbours.
        self.assertGreater(idle["Cold"], recording.cold - (4 << 20))
        self.assertLessEqual(idle["Cold"], recording.cold)
        self.assertLess(idle["Striped"], 2 << 20)  # some page of each huge one is touched
        self.assertLess(idle["Hot"], 2 << 20)


class Rights(unittest.TestCase):
    def test_somebody_else_than_root_is_told_why_not(self):
        recording = Recording(seconds=3, user=NOBODY)
        self.assertEqual(recording.code, 0)
        self.assertIn("no right to use /sys/kernel/mm/page_idle/bitmap (Permission denied); record as root", recording.stderr)
        self.assertNotIn("not touched in the last", recording.stderr)
        self.assertNotIn("idle_bytes", recording.figures)


if __name__ == "__main__":
    unittest.main()
