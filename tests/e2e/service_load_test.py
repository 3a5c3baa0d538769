"""Twenty sessions of fifty processes at once on one service: no dump is lost."""

import os
import subprocess
import time
import unittest

import service_run
from profile_run import program
from service_run import PRELOAD, Recording
from service_test import ROUND, ServiceTest

SESSIONS, PROCESSES = 20, 50


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

    def test_no_dump_is_lost(self):
        recordings = [Recording(self.place, ["-n", f"load{i}", "-i", "1", "--shmem-size", "65536", "-q"])
                      for i in range(SESSIONS)]
        for recording in recordings:  # quiet ones do not say when they are active
            end = time.monotonic() + service_run.DEADLINE_S
            path = os.path.join(recording.directory, "raw-trace")
            while not (os.path.exists(path) and os.path.getsize(path)):
                self.assertLess(time.monotonic(), end)
                time.sleep(0.01)
        read_end, write_end = os.pipe()
        processes, leash = self.start_processes(write_end)
        os.close(write_end)
        with os.fdopen(read_end) as ready:
            for _ in processes:
                self.assertEqual(ready.readline(), "ready\n")
        for recording in recordings:
            recording.process.send_signal(2)
        for i, recording in enumerate(recordings):
            recording.finish(stop=None)
            self.assertEqual(recording.exit_code, 0, recording.stderr)
            mine = {p.pid for p in processes if p.args[0] == f"load{i}"}
            self.assertEqual({p.pid for p in recording.pprofs}, mine)
            for pprof in recording.pprofs:
                self.assertEqual(pprof.of("kept_block")["space"], ROUND)
            for pid in mine:
                (dump,) = recording.dumps_of(pid)
                self.assertTrue(dump.from_startup)
                self.assertEqual(dump.quality.lost_records, 0)
        os.close(leash)
        for process in processes:
            self.assertEqual(process.wait(timeout=60), 0)


if __name__ == "__main__":
    unittest.main()
