"""Many sessions of many processes at once on one service: no dump is lost. On a machine that does much else programs may
have waited for too long: then it is told how many.

HEAPPROFD_LOAD=SESSIONSxPROCESSES sets the size; tools/stress runs the large form.
"""

import os
import re
import signal
import subprocess
import time
import unittest

import service_run
from profile_run import HEAP_PROFILE, program
from service_run import PRELOAD, Recording
from service_test import ROUND, ServiceTest

SESSIONS, PROCESSES = map(int, os.environ.get("HEAPPROFD_LOAD", "5x10").split("x"))


class Load(ServiceTest):
    def setUp(self):
        super().setUp()
        service_run.DEADLINE_S = 400
        self.place.start()

    def start_processes(self, output):
        """PROCESSES for each session, named after it, that live until the descriptor given back is closed."""
        read_end, write_end = os.pipe()
        env = {**os.environ, **self.place.env, "LD_PRELOAD": PRELOAD}
        processes = [subprocess.Popen([f"load{session}", "1"], executable=program("patient"), env=env, stdin=read_end,
                                      stdout=output)
                     for _ in range(PROCESSES) for session in range(SESSIONS)]
        os.close(read_end)
        return processes, write_end

    def start_recordings(self):
        recordings = [Recording(self.place, ["-n", f"load{i}", "-i", "1", "--shmem-size", "65536"])
                      for i in range(SESSIONS)]
        return [recording.wait_active() for recording in recordings]

    def test_no_dump_is_lost(self):
        recordings = self.start_recordings()
        read_end, write_end = os.pipe()
        processes, leash = self.start_processes(write_end)
        os.close(write_end)
        with os.fdopen(read_end) as ready:
            for _ in processes:
                self.assertEqual(ready.readline(), "ready\n")
        begin = time.monotonic()
        mark = subprocess.run([HEAP_PROFILE, "mark", "all ready"], env={**os.environ, **self.place.env},
                              capture_output=True, text=True)
        self.assertEqual(mark.returncode, 0, mark.stderr)
        for recording in recordings:
            recording.process.send_signal(signal.SIGINT)
        for i, recording in enumerate(recordings):
            recording.finish(stop=None)
            self.assertEqual(recording.exit_code, 0, recording.stderr)
            self.check(recording, {p.pid for p in processes if p.args[0] == f"load{i}"})
        print(f"{SESSIONS} sessions of {PROCESSES} processes: two dumps of each in {time.monotonic() - begin:.1f} s")
        os.close(leash)
        for process in processes:
            self.assertEqual(process.wait(timeout=60), 0)

    def check(self, recording, mine):
        late = re.findall(r"(\d+) programs? (?:was|were) not recorded .*ended, or waiting no longer \(1 s\), when the profiler "
                          r"answered, or too many at once", recording.stderr)
        recorded = {p.pid for p in recording.pprofs}
        self.assertEqual(len(recorded) + sum(map(int, late)), len(mine), recording.stderr)
        mine = mine & recorded
        self.assertEqual(sorted(p.pid for p in recording.pprofs), sorted([*mine, *mine]))
        for pprof in recording.pprofs:
            self.assertEqual(pprof.of("kept_block")["space"], ROUND)
        for pid in mine:
            dumps = recording.dumps_of(pid)
            self.assertEqual([dump.label for dump in dumps], ["all ready", ""])
            for dump in dumps:
                self.assertTrue(dump.from_startup)
                self.assertEqual(dump.quality.lost_records, 0)


if __name__ == "__main__":
    unittest.main()
