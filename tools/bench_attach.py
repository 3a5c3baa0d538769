"""What attaching to processes costs them: tools/bench attach."""

import contextlib
import json
import os
import statistics
import subprocess
import tempfile
import time

SILENT = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
TRUE = "/bin/true"
MANY = 8  # recordings by name at once
NO_SAMPLE = 4  # exit code of a recording in which there was none


class Engine:
    """A service of the benchmark's own, and recordings that it makes."""

    def __init__(self, build, directory):
        self.tool = os.path.join(build, "src", "cli", "heap_profile")
        self.directory = directory
        self.recordings = 0
        self.stats = os.path.join(directory, "stats.json")
        self.env = {**os.environ, "HEAPPROFD_DIRECTORY": os.path.join(directory, "service"),
                    "HEAPPROFD_STATS_JSON": self.stats}
        self.service = subprocess.Popen([os.path.join(build, "src", "cli", "heapprofd")], env=self.env, **SILENT)
        while not os.path.exists(os.path.join(directory, "service", "socket")):
            time.sleep(0.01)

    def command(self, *options):
        self.recordings += 1
        return [self.tool, "-o", os.path.join(self.directory, f"out{self.recordings}"), *options]

    def attach(self, pid):
        done = subprocess.run(self.command("-q", "-p", str(pid), "-d", "30"), stderr=subprocess.PIPE, text=True, check=False,
                              env=self.env)
        if done.returncode not in (0, NO_SAMPLE):
            raise RuntimeError(done.stderr)
        with open(self.stats) as file:
            return json.load(file)

    @contextlib.contextmanager
    def recording(self, name, *options):
        tool = subprocess.Popen(self.command("-n", name, "--no-running", *options), env=self.env, text=True,
                                stderr=subprocess.PIPE)
        while "Profiling active" not in (line := tool.stderr.readline()):
            if not line:
                raise RuntimeError("heap_profile -n does not start")
        try:
            yield
        finally:
            tool.send_signal(2)
            tool.communicate()


def stops(engine, crowd, threads, count):
    """Milliseconds in which all threads are stopped: at the beginning and at the end of recordings."""
    with subprocess.Popen([crowd, str(threads)], stdout=subprocess.PIPE) as process:
        try:
            process.stdout.readline()
            found = [engine.attach(process.pid) for _ in range(count)]
        finally:
            process.terminate()
    assert all(stats["attach_threads"] == threads for stats in found)
    return [[stats[name] / 1000 for stats in found] for name in ("attach_all_threads_us", "detach_all_threads_us")]


def start_us(count):
    """Median time from starting a program that does nothing to its end."""
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        os.waitpid(os.posix_spawn(TRUE, [TRUE], {}), 0)
        times.append((time.perf_counter() - begin) * 1e6)
    return statistics.median(times)


def pair_ns(pair):
    return float(subprocess.run([pair, "1"], check=True, capture_output=True, text=True).stdout)


def measure(build, rounds):
    crowd = os.path.join(build, "tests", "programs", "crowd")
    pair = os.path.join(build, "bench", "bench_pair")
    print("\n| what | figure |\n|---|--:|")
    with tempfile.TemporaryDirectory(prefix="hpd_") as directory:
        engine = Engine(build, directory)
        try:
            for threads, count in ((10, 10 * rounds), (1000, 2 * rounds)):
                for what, times in zip(("attach", "detach"), stops(engine, crowd, threads, count)):
                    print(f"| all of {threads} threads stopped, {what}: least, p50 of {count} | {min(times):.2f} ms, "
                          f"{statistics.median(times):.2f} ms |", flush=True)
            plain, attached = [], []
            for _ in range(rounds):
                plain.append(pair_ns(pair))
                with engine.recording("bench_pair", "-i", "1000000000"):
                    attached.append(pair_ns(pair))
            print(f"| malloc+free pair, plain | {min(plain):.1f} ns |")
            print(f"| the same, attached, nothing sampled | {min(attached):.1f} ns "
                  f"({min(attached) - min(plain):+.1f}; {min(attached) / min(plain):.2f} of plain) |", flush=True)
            free, watched, watched_by_many = [], [], []
            for _ in range(rounds):
                free.append(start_us(200))
                with contextlib.ExitStack() as recordings:
                    recordings.enter_context(engine.recording("no_such_program"))
                    watched.append(start_us(200))
                    for i in range(1, MANY):
                        recordings.enter_context(engine.recording(f"no_such_program{i}"))
                    watched_by_many.append(start_us(200))
            print(f"| starting {TRUE} and waiting for its end, median of 200 | {min(free):.0f} us |")
            print(f"| the same while a recording waits for another name | {min(watched):.0f} us "
                  f"({min(watched) - min(free):+.0f}) |")
            print(f"| the same while {MANY} recordings do | {min(watched_by_many):.0f} us "
                  f"({min(watched_by_many) - min(free):+.0f}) |", flush=True)
        finally:
            engine.service.terminate()
            engine.service.wait()
