"""What a recording costs after its program's end, until the prompt is back: tools/bench end."""

import json
import os
import resource
import select
import statistics
import subprocess
import tempfile
import time

SILENT = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
DEADLINE_S = 60  # for a program to be started


def child_with(command, parent):
    """The process that runs `command` as a child of `parent`, which has others, too."""
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        with open(f"/proc/{parent}/task/{parent}/children") as children:
            pids = children.read().split()
        for pid in pids:
            try:
                with open(f"/proc/{pid}/cmdline") as cmdline:
                    if cmdline.read().split("\0")[:len(command)] == command:
                        return int(pid)
            except OSError:
                continue  # it has ended
        time.sleep(0.002)
    raise RuntimeError(f"{command[0]} was not started")


def measure_once(prefix, command):
    """(seconds from the program's end to the recorder's, CPU seconds of all, of the recorder)"""
    with tempfile.TemporaryDirectory() as directory:
        stats = os.path.join(directory, "stats.json")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        recorder = subprocess.Popen([*prefix, "-o", os.path.join(directory, "out"), "--", *command],
                                    env={**os.environ, "HEAPPROFD_STATS_JSON": stats}, **SILENT)
        program = os.pidfd_open(child_with(command, recorder.pid))
        select.select([program], [], [])
        end = time.monotonic()
        os.close(program)
        recorder.wait()
        waited = time.monotonic() - end
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        with open(stats) as file:
            engine = json.load(file)["engine_cpu_s"]
        return waited, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, engine


def measure(heap_profile, programs, rounds):
    """`programs`: (name, command)"""
    variants = {"with summary and report": [], "-q --no-report": ["-q", "--no-report"]}
    print("\n| program | variant | prompt after its end, least (median) | CPU of all | CPU of the engine |")
    print("|---|---|--:|--:|--:|")
    for name, command in programs:
        runs = {variant: [] for variant in variants}
        for _ in range(rounds):
            for variant, options in variants.items():
                runs[variant].append(measure_once([heap_profile, "-i", "4096", *options], command))
        for variant, found in runs.items():
            waited, total, engine = zip(*found)
            print(f"| {name} | {variant} | {min(waited):.3f} s ({statistics.median(waited):.3f} s) | {min(total):.2f} s "
                  f"| {min(engine):.2f} s |", flush=True)
