#!/usr/bin/env python3
"""Much at once, for long, and with too little of everything; each test says what may be lost, and proves that nothing
else was.

HEAP_PROFILE=... TEST_PROGRAMS=... COMPAT=... PYTHONPATH=tests/e2e:... load_stress.py [--short] [--only NAME]
"""

import argparse
import contextlib
import json
import math
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

from google.protobuf.message import DecodeError

import service_run
import trace_pb2
from profile_run import HEAP_PROFILE, Pprof, program
from service_run import PRELOAD, Patient, Place, Recording, live_bytes, wait_for
from verdict import Verdict

ROUND = 1000 * 1000  # bytes that patient keeps at each letter a
# What programs are called here: sessions that record by name would find those of other tests.
RUSH, PATIENT = f"stress_rush_{os.getpid()}", f"stress_patient_{os.getpid()}"


def environment(place):
    return {**os.environ, **place.env, "LD_PRELOAD": PRELOAD}


def memory_kib(pid, field):
    with open(f"/proc/{pid}/status") as status:
        return int(next(line for line in status if line.startswith(field + ":")).split()[1])


def descriptors(place):
    return sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in place.parts())


def crowd(processes, calls, verdict):
    """Programs with 8 threads each, all at once, at the default interval, in one recording.
    Nothing may be lost: every program has its dump, every call is counted, no record is missing."""
    with Place().start() as place:
        recording = Recording(place, ["-n", RUSH, "--no-report"]).wait_active()
        running = [subprocess.Popen([RUSH, "8", str(calls)], executable=program("rush"), env=environment(place),
                                    stdout=subprocess.PIPE, text=True)
                   for _ in range(processes)]
        slowest = max(float(process.communicate(timeout=service_run.DEADLINE_S)[0]) for process in running)
        peak = memory_kib(place.service.pid, "VmHWM")
        recording.finish()
    verdict.check(f"crowd: {recording.stderr}", recording.exit_code == 0)
    verdict.check("crowd: a program failed", not any(process.returncode for process in running))
    for process in running:
        dumps = recording.dumps_of(process.pid)
        verdict.check(f"crowd: {len(dumps)} dumps of a process", len(dumps) == 1)
        for dump in dumps:
            verdict.check(f"crowd: {dump.exact_alloc_calls} of {calls} calls", dump.exact_alloc_calls >= calls)
            verdict.check(f"crowd: {dump.quality.lost_records} records are lost", dump.quality.lost_records == 0)
    want = processes * calls * 100
    got = sum(pprof.of("rushed")["alloc_space"] for pprof in recording.pprofs)
    verdict.check(f"crowd: {got} bytes are estimated, {want} were allocated", abs(got - want) < 6 * math.sqrt(want * 4096))
    return (f"{processes} processes of 8 threads, {processes * calls / 1e6:.0f} M calls in {slowest / 1e3:.1f} s, none lost, "
            f"engine {peak / 1024:.0f} MiB")


def recorded_rush(calls, verdict):
    """Every call of `rush` recorded; the figures."""
    with tempfile.TemporaryDirectory() as directory:
        figures = os.path.join(directory, "figures")
        done = subprocess.run([HEAP_PROFILE, "-i", "1", "--no-report", "-o", os.path.join(directory, "out"), "--", program("rush"),
                               "2", str(calls)], env={**os.environ, "HEAPPROFD_STATS_JSON": figures}, capture_output=True, text=True,
                              timeout=service_run.DEADLINE_S, check=False)
        verdict.check(f"replay: {done.stderr}", done.returncode == 0)
        (pprof,) = [Pprof(os.path.join(directory, "out", name)) for name in os.listdir(os.path.join(directory, "out"))
                    if name.startswith("heap_dump.")]
        found = pprof.of("rushed")
        verdict.check(f"replay: {found} of {calls} calls",
                      (found["alloc_objects"], found["alloc_space"], found["space"]) == (calls, calls * 100, 0))
        with open(figures) as file:
            return {**json.load(file), "ms": float(done.stdout)}


def replay(calls, verdict):
    """Every one of many calls recorded. Nothing may be lost, and ten times as many take no more memory."""
    few, many = recorded_rush(calls // 10, verdict), recorded_rush(calls, verdict)
    grown = many["engine_peak_rss_kb"] - few["engine_peak_rss_kb"]
    verdict.check(f"replay: the engine grew by {grown} KiB", grown < 4096)
    return (f"{calls / 1e6:g} M calls, each recorded, in {many['ms'] / 1e3:.1f} s, none lost; "
            f"engine {many['engine_peak_rss_kb'] / 1024:.1f} MiB, {few['engine_peak_rss_kb'] / 1024:.1f} MiB after a tenth of them")


def short_lives(count, at_once, verdict):
    """Many programs that live for a moment each. Nothing may be lost: each has a dump with all it kept; and
    whatever the engine has opened for them is closed again."""
    with Place().start() as place:
        recording = Recording(place, ["-n", PATIENT, "-i", "1", "--shmem-size", "65536", "--no-report"]).wait_active()
        before = most = descriptors(place)
        pids, running = [], []
        for i in range(count):
            running.append(subprocess.Popen([PATIENT, "1"], executable=program("patient"), env=environment(place),
                                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL))
            pids.append(running[-1].pid)
            if len(running) == at_once:
                verdict.check("short lives: a program failed", running.pop(0).wait(timeout=service_run.DEADLINE_S) == 0)
            if i % at_once == 0:
                most = max(most, descriptors(place))
        for process in running:
            verdict.check("short lives: a program failed", process.wait(timeout=service_run.DEADLINE_S) == 0)
        files = 8  # of the programs, kept for the names in them
        with contextlib.suppress(TimeoutError):
            wait_for(lambda: descriptors(place) <= before + files, "")
        after = descriptors(place)
        verdict.check(f"short lives: {after} descriptors, {before} before", after <= before + files)
        recording.finish()
    verdict.check(f"short lives: {recording.stderr}", recording.exit_code == 0)
    dumps = {}
    for packet in recording.trace.packet:
        for dump in packet.profile_packet.process_dumps:
            dumps.setdefault(dump.pid, []).append(dump)
    verdict.check(f"short lives: {len(set(pids) - set(dumps))} of {count} have no dump: {recording.stderr}", set(pids) == set(dumps))
    # The kernel gives numbers again while so many programs begin.
    several = [pid for pid in dumps if len(dumps[pid]) != pids.count(pid)]
    verdict.check(f"short lives: processes with too few or too many dumps: {several}", not several)
    cut = [(dump.pid, live_bytes(dump), dump.quality.lost_records) for of_pid in dumps.values() for dump in of_pid
           if not ROUND <= live_bytes(dump) < 1.1 * ROUND or dump.quality.lost_records > 0]
    verdict.check(f"short lives: dumps that are not whole, with bytes and lost records: {cut}", not cut)
    return f"{count} programs, {at_once} at a time: {sum(map(len, dumps.values())) - len(cut)} whole dumps, {before} descriptors before, {after} after, at most {most}"


class SmallDisk:
    """A file system with so many bytes, in name spaces of whoever runs on it."""

    def __init__(self):
        self.place = tempfile.mkdtemp(prefix="stress_disk_")
        self.results = tempfile.mkdtemp(prefix="stress_results_")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.place)
        shutil.rmtree(self.results)

    def run(self, size, command):
        """The exit code, what the command wrote to both outputs, and the files that it left."""
        shutil.rmtree(self.results)
        script = ('mount -t tmpfs -o size="$1" none "$2" && cd "$2" || exit 99; shift 2; results="$1"; shift; TMPDIR=. "$@"; '
                  'code=$?; [ ! -d out ] || cp -r out "$results"; exit $code')
        done = subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh", str(size), self.place, self.results, *command],
                              capture_output=True, text=True, timeout=service_run.DEADLINE_S, check=False)
        files = {}
        for name in os.listdir(self.results) if os.path.isdir(self.results) else []:
            with open(os.path.join(self.results, name), "rb") as file:
                files[name.split(".")[0]] = file.read()
        os.makedirs(self.results, exist_ok=True)
        return done, files


def is_whole(name, content):
    if name == "raw-trace":
        with contextlib.suppress(DecodeError):
            return any(packet.profile_packet.process_dumps for packet in trace_pb2.Trace.FromString(content).packet)
        return False
    return content.endswith(b"</html>\n") if name == "report" else content.startswith(b"\x1f\x8b")


def full_disk(step, verdict):
    """A recording on disks of every size, from nothing to what it needs, in steps of pages. What does not fit may be
    lost; it is told, files that are left are whole, but for a trace that is told to be cut, and the program is not
    disturbed."""
    page, sizes, told = 4096, 0, 0
    command = [HEAP_PROFILE, "-i", "1", "-o", "out", "--", "/usr/bin/python3", "-c", "import json; print('done')"]
    with SmallDisk() as disk:
        for pages in range(1, 2000, step):
            done, files = disk.run(pages * page, command)
            if done.returncode == 99 or done.stderr.startswith("unshare:"):
                return "left out: mounting is not allowed here"
            what = f"full disk at {pages} pages"
            sizes += 1
            verdict.check(f"{what}: the program printed {done.stdout!r}", done.stdout == "done\n")
            missing = {"raw-trace", "heap_dump", "report"} - set(files)
            for name in files:
                is_told = name == "raw-trace" and "cannot write trace out/raw-trace: No space left on device" in done.stderr
                verdict.check(f"{what}: {name} is cut", is_whole(name, files[name]) or is_told and done.returncode == 1)
            verdict.check(f"{what}: {missing} are missing, exit code {done.returncode}: {done.stderr}",
                          not missing or "No space left on device" in done.stderr)
            verdict.check(f"{what}: exit code 0 without a trace", done.returncode != 0 or "raw-trace" in files)
            told += 1 if missing else 0
            if not missing:
                return f"{sizes} sizes up to {pages * page // 1024} KiB; {told} of them too small, which was told each time"
    return "no size was enough"


def killed_services(count, programs, verdict):
    """The service is killed while it records, and started again. What was recorded until then may be lost, which is
    told, and of each program the allocation by which it notices; programs go on, and the next recording has all that
    comes then."""
    place = Place()
    with place.start(), contextlib.ExitStack() as at_end:
        patients = [Patient(place, [PATIENT], executable=program("patient")) for _ in range(programs)]
        for patient in patients:
            at_end.callback(patient.kill)
            patient.wait_ready()
        for i in range(count):
            lost = Recording(place, ["-n", PATIENT, "-i", "1"]).wait_active()
            for patient in patients:
                verdict.check(f"kill {i}: a program failed", patient.tell("a") == "kept")
            place.kill()
            with contextlib.suppress(DecodeError):  # the trace may be cut
                lost.finish(stop=None)
            verdict.check(f"kill {i}: told {lost.exit_code}, {lost.stderr}",
                          lost.exit_code != 0 and "the service ended before" in lost.stderr)
            for patient in patients:
                verdict.check(f"kill {i}: a program failed", patient.tell("f") == "freed")
            place.start()
            recording = Recording(place, ["-n", PATIENT, "-i", "1"]).wait_active()
            for patient in patients:
                patient.tell("a")
            recording.finish()
            found = {pprof.pid: pprof.of("kept_block")["space"] for pprof in recording.pprofs}
            verdict.check(f"kill {i}: {found}; {recording.stderr}",
                          set(found) == {patient.pid for patient in patients} and set(found.values()) <= {ROUND, ROUND - 1000})
            for patient in patients:
                patient.tell("f")
        for patient in patients:
            verdict.check("kills: a program failed", patient.end() == 0)
    return f"{count} kills, {programs} programs: all live, {count * programs} later profiles exact"


def starved_engines(steps, verdict):
    """The engine gets no more memory. The recording may be lost, as a whole or programs of it, which is told; what it
    has is true; programs go on, and the next recording has all."""
    outcomes = {"whole": 0, "told": 0}
    rounds = 10
    for step in range(steps):
        extra_kib = 16384 * step // steps
        with Place().start() as place, contextlib.ExitStack() as at_end:
            recording = Recording(place, ["-n", PATIENT, "-i", "1", "--no-report"]).wait_active()
            engine = place.service.pid
            limit = (memory_kib(engine, "VmData") + extra_kib) << 10
            resource.prlimit(engine, resource.RLIMIT_DATA, (limit, limit))
            patients = [Patient(place, [PATIENT], executable=program("patient")) for _ in range(8)]
            for patient in patients:
                at_end.callback(patient.kill)
                patient.wait_ready()
                for _ in range(rounds):
                    verdict.check(f"starved at {extra_kib} KiB: a program failed", patient.tell("a") == "kept")
            recording.process.send_signal(signal.SIGINT)
            recording.finish(stop=None)
            for patient in patients:
                verdict.check(f"starved at {extra_kib} KiB: a program failed", patient.end() == 0)
            found = {pprof.pid: pprof.of("kept_block")["space"] for pprof in recording.pprofs}
            is_whole_one = found == {patient.pid: rounds * ROUND for patient in patients}
            verdict.check(f"starved at {extra_kib} KiB: {found}, exit code {recording.exit_code}: {recording.stderr}",
                          is_whole_one or recording.exit_code != 0)
            outcomes["whole" if is_whole_one else "told"] += 1
    return f"{steps} limits: {outcomes['whole']} recordings whole, {outcomes['told']} lost and told"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="little of each, for CI")
    parser.add_argument("--only", help="one kind of test")
    arguments = parser.parse_args()
    short = arguments.short
    service_run.DEADLINE_S = 120 if short else 1800
    verdict = Verdict()
    for name, work in [("crowd", lambda: crowd(*((20, 100_000) if short else (100, 1_000_000)), verdict)),
                       ("replay", lambda: replay(2_000_000 if short else 100_000_000, verdict)),
                       ("short lives", lambda: short_lives(*((200, 8) if short else (5000, 16)), verdict)),
                       ("full disk", lambda: full_disk(9 if short else 1, verdict)),
                       ("killed services", lambda: killed_services(*((2, 4) if short else (30, 20)), verdict)),
                       ("starved engines", lambda: starved_engines(4 if short else 12, verdict))]:
        if arguments.only in (None, name):
            verdict.run(name, work)
    return verdict.end()


if __name__ == "__main__":
    sys.exit(main())
