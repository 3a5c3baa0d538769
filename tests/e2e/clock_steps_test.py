"""The wall clock is set while programs are recorded: nothing that a recording says or does hangs on it."""

import glob
import itertools
import os
import subprocess
import tempfile
import time
import unittest

from profile_run import HEAP_PROFILE
from service_run import PRELOAD, wait_for
from service_test import ROUND, ServiceTest

LIBRARY = next(iter(glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")), "")
STEPS = ("+400d", "-400d", "+0")


@unittest.skipUnless(LIBRARY, "needs libfaketime")
class ClockSteps(ServiceTest):
    def setUp(self):
        super().setUp()
        self.files = tempfile.TemporaryDirectory()
        self.addCleanup(self.files.cleanup)
        self.offset = os.path.join(self.files.name, "offset")
        self.step("+0")
        # Of the recorder and of the service; of a program, where a test says so.
        self.fake = {"FAKETIME_TIMESTAMP_FILE": self.offset, "FAKETIME_NO_CACHE": "1", "DONT_FAKE_MONOTONIC": "1",
                     "NO_FAKE_STAT": "1"}  # it locks, also in processes that are forked meanwhile
        self.place.env |= {"LD_PRELOAD": LIBRARY, **self.fake}
        self.assertLess(self.shown_year(), 2100)
        self.step("+36500d")
        self.assertGreater(self.shown_year(), 2100, "the clock is not faked")
        self.step("+0")
        self.place.start()

    def step(self, offset):
        with open(self.offset + ".new", "w") as file:
            file.write(offset)
        os.rename(self.offset + ".new", self.offset)

    def shown_year(self):
        return int(subprocess.run(["date", "+%Y"], env={**os.environ, **self.place.env}, capture_output=True, text=True,
                                  check=True).stdout)

    def test_dumps_keep_their_order_and_distances_and_miss_nothing(self):
        begin = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        recording = self.record("-n", "patient", "-i", "1").wait_active()
        patient = self.patient(env={"LD_PRELOAD": f"{PRELOAD}:{LIBRARY}", **self.fake}).wait_ready()
        for offset in STEPS:
            patient.tell("a")
            self.step(offset)
            self.mark()
        recording.finish()
        end = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        self.assertEqual(recording.exit_code, 0, recording.stderr)
        dumps = recording.dumps_of(patient.pid)
        self.assertEqual([pprof.of("kept_block")["space"] for pprof in recording.pprofs],
                         [ROUND, 2 * ROUND, 3 * ROUND, 3 * ROUND])
        times = [begin, *(dump.timestamp for dump in dumps), end]
        self.assertTrue(all(earlier < later for earlier, later in itertools.pairwise(times)), times)

    def mark(self):
        subprocess.run([HEAP_PROFILE, "mark", "step"], env={**os.environ, **self.place.env}, check=True)

    def test_a_duration_is_not_cut(self):
        recording = self.record("-n", "patient", "-i", "1", "-d", "600000").wait_active()
        patient = self.patient(env={"LD_PRELOAD": f"{PRELOAD}:{LIBRARY}", **self.fake}).wait_ready()
        patient.tell("a")
        self.step(STEPS[0])
        for _ in range(2):  # it has gone on with everything else under the new clock
            self.mark()
        self.assertIsNone(recording.process.poll())
        recording.finish()
        self.assertEqual(len(recording.dumps_of(patient.pid)), 3)

    def test_a_duration_is_not_drawn_out(self):
        for seconds in (2, 4, 8, 16, 32):
            self.step("+0")
            begin = time.monotonic()
            recording = self.record("-n", "patient", "-i", "1", "-d", str(seconds * 1000)).wait_active()
            self.step(STEPS[1])
            was_early = recording.process.poll() is None  # else this machine is too slow for that
            wait_for(lambda: recording.process.poll() is not None, "the recording does not end")
            self.assertGreaterEqual(time.monotonic() - begin, seconds)
            recording.finish(stop=None)
            if was_early:
                return
        self.fail("no recording lasted until the clock was set")


if __name__ == "__main__":
    unittest.main()
