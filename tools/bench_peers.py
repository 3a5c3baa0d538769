"""What other heap profilers cost beside ours, in one table from one run: tools/bench peers."""

import collections
import glob
import json
import math
import os
import resource
import shutil
import subprocess
import tempfile
import threading
import time

SILENT = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
POLL_S = 0.01

# prefix: how a program is run under it. answer: the command that makes text for people of what that left; none where it is
# made before the run ends, no_answer where there is none to measure. missing: why it cannot be measured here. small: only
# with small programs.
Tool = collections.namedtuple("Tool", "name prefix answer no_answer missing small", defaults=([], [], False, "", False))
Run = collections.namedtuple("Run", "target_cpu_s all_cpu_s wall_s target_mib largest_mib output_kib answer_s")


def library(name):
    """Path of a shared library of Debian's, or ""."""
    return next(iter(glob.glob(f"/usr/lib/*/{name}")), "")


def why_not_jemalloc(path):
    if not path:
        return "libjemalloc.so.2 is not installed (libjemalloc2)"
    said = subprocess.run(["/bin/true"], env={"LD_PRELOAD": path, "MALLOC_CONF": "prof:true"}, capture_output=True, text=True)
    return "this libjemalloc.so.2 is built without profiling" if said.stderr else ""


def why_not(command, package):
    return "" if shutil.which(command) else f"{command} is not installed ({package})"


def text_by(command, program, files):
    """What jemalloc and tcmalloc leave is made text by a script that needs the program, too; of the last file here."""
    text = ["sh", "-c", f'exec {command} --text "$0" "$(ls -t {files} | head -n 1)"', program]
    return {"answer": text} if shutil.which(command) else {"no_answer": True}


def tools(heap_profile, out, program):
    """All, for a program: what they leave goes to the directory `out`."""
    jemalloc, tcmalloc = library("libjemalloc.so.2"), library("libtcmalloc.so.4")
    no_jemalloc = why_not_jemalloc(jemalloc)
    no_tcmalloc = "" if tcmalloc else "libtcmalloc.so.4 is not installed (libgoogle-perftools4)"
    no_valgrind = why_not("valgrind", "valgrind")
    sampled = f"MALLOC_CONF=prof:true,prof_final:true,lg_prof_sample:12,prof_prefix:{out}/jemalloc"
    return [
        Tool("plain", no_answer=True),
        Tool("heap_profile -i 4096", [heap_profile, "-i", "4096", "-o", out, "--"]),
        Tool("jemalloc, not profiling", ["env", f"LD_PRELOAD={jemalloc}"], no_answer=True, missing=no_jemalloc),
        Tool("jemalloc, sampled 4096", ["env", f"LD_PRELOAD={jemalloc}", sampled], missing=no_jemalloc,
             **text_by("jeprof", program, f"{out}/jemalloc.*")),
        Tool("heap_profile -i 1", [heap_profile, "-i", "1", "-o", out, "--"]),
        Tool("heaptrack", ["heaptrack", "-o", f"{out}/heaptrack"], ["heaptrack_print", "-f", f"{out}/heaptrack.zst"],
             missing=why_not("heaptrack", "heaptrack")),
        Tool("tcmalloc, not profiling", ["env", f"LD_PRELOAD={tcmalloc}"], no_answer=True, missing=no_tcmalloc),
        Tool("tcmalloc, HEAPPROFILE", ["env", f"LD_PRELOAD={tcmalloc}", f"HEAPPROFILE={out}/tcmalloc"], missing=no_tcmalloc,
             **text_by("google-pprof", program, f"{out}/tcmalloc.*")),
        Tool("valgrind massif", ["valgrind", "-q", "--tool=massif", f"--massif-out-file={out}/massif"],
             ["ms_print", f"{out}/massif"], missing=no_valgrind, small=True),
        Tool("valgrind dhat", ["valgrind", "-q", "--tool=dhat", f"--dhat-out-file={out}/dhat"], no_answer=True,
             missing=no_valgrind, small=True),
    ]


class HeaptrackTarget(threading.Thread):
    """Reads CPU time and peak memory of the process that heaptrack records, until that ends: heaptrack tells neither."""

    def __init__(self):
        super().__init__(daemon=True)
        self.cpu_s = self.peak_mib = float("nan")
        self.done = threading.Event()
        self.pid = 0

    def run(self):
        while not self.done.wait(POLL_S):
            try:
                self.pid = self.pid or self.find(os.getpid())
                if self.pid:
                    self.read()
            except OSError:
                continue  # something has ended meanwhile

    def find(self, parent):
        with open(f"/proc/{parent}/task/{parent}/children") as children:
            pids = [int(pid) for pid in children.read().split()]
        for pid in pids:
            with open(f"/proc/{pid}/maps") as maps:
                if "libheaptrack_preload" in maps.read():
                    return pid
            found = self.find(pid)
            if found:
                return found
        return 0

    def read(self):
        with open(f"/proc/{self.pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        self.cpu_s = (int(fields[11]) + int(fields[12])) / CLOCK_TICKS
        with open(f"/proc/{self.pid}/status") as status:
            peak = [int(line.split()[1]) for line in status if line.startswith("VmHWM:")]
        if peak:  # a zombie has none
            self.peak_mib = peak[0] / 1024


def size_kib(directory):
    return sum(os.path.getsize(os.path.join(place, name)) for place, _, names in os.walk(directory) for name in names) / 1024


def all_cpu():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def known_peak(mib):
    """NaN where the kernel may have counted this script, from which the process was forked."""
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return mib if mib > own + 1 else float("nan")


def make_answer(tool, deadline):
    """CPU seconds of making the text."""
    before = all_cpu()
    if tool.answer:
        subprocess.run(tool.answer, check=True, timeout=max(1, deadline - time.monotonic()), **SILENT)
    return all_cpu() - before


def run_once(program, tool, out, deadline):
    shutil.rmtree(out, ignore_errors=True)
    os.mkdir(out)
    watcher = HeaptrackTarget() if tool.name == "heaptrack" else None
    if watcher:
        watcher.start()
    limit = ["timeout", "-k", "5", str(max(1, int(deadline - time.monotonic())))]
    begin = time.monotonic()
    total, wall = program.run([*limit, *tool.prefix], out + ".stats")
    with_answer = total + make_answer(tool, deadline)
    answered = float("nan") if tool.no_answer else time.monotonic() - begin
    largest_mib = known_peak(program.peak_rss_mib)
    target_cpu, target_mib = total, largest_mib
    if watcher:
        watcher.done.set()
        watcher.join()
        target_cpu, target_mib = watcher.cpu_s, watcher.peak_mib
    elif tool.name.startswith("heap_profile"):
        with open(out + ".stats") as file:
            stats = json.load(file)
        target_cpu, target_mib = stats["target_cpu_s"], stats["target_peak_rss_kb"] / 1024
    return Run(target_cpu, with_answer, wall, target_mib, largest_mib, size_kib(out), answered)


def least(runs):
    return Run(*(min(values) for values in zip(*runs)))


def cell(value, form, unit=""):
    return "" if math.isnan(value) else format(value, form) + unit  # not measured


def plain_row(program, plain):
    return (f"| {program} | plain | {plain.target_cpu_s:.2f} s | {plain.all_cpu_s:.2f} s | {plain.wall_s:.2f} s "
            f"| {cell(plain.target_mib, '.0f', ' MiB')} | {cell(plain.largest_mib, '.0f', ' MiB')} | | |")


def row(tool, plain, runs, rounds):
    run = least(runs)
    ratios = [cell(value / of_plain, ".2f") for value, of_plain in zip(run[:4], plain[:4])]
    fewer = "" if len(runs) == rounds else f" ({len(runs)} of {rounds} rounds)"
    output = f"{run.output_kib:.0f} KiB" if tool.prefix and "not profiling" not in tool.name else ""
    return (f"| | {tool.name}{fewer} | {' | '.join(ratios)} | {cell(run.largest_mib, '.0f', ' MiB')} | {output} "
            f"| {cell(run.answer_s, '.2f', ' s')} |")


def print_table(chosen, found, rounds, reasons):
    print("| program | tool | CPU of the target | CPU of all, with the answer | wall | peak of the target | largest process "
          "| output | first answer after |")
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|")
    for program, its_tools in chosen.items():
        plain = found[program.name, "plain"]
        print(plain_row(program.name, least(plain)) if plain else f"| {program.name} | plain | not measured | | | | | | |")
        for tool in its_tools[1:]:
            runs = found[program.name, tool.name]
            if plain and runs:
                print(row(tool, least(plain), runs, rounds))
            else:
                print(f"| | {tool.name} | {reasons.get((program.name, tool.name), 'not measured: the time was over')} | | | | | | |")


def measure(heap_profile, programs, rounds, minutes):
    """`programs`: (program, whether it is small)"""
    deadline = time.monotonic() + 60 * minutes
    found, reasons = collections.defaultdict(list), {}
    with tempfile.TemporaryDirectory(prefix="hpd_peers_") as directory:
        out = os.path.join(directory, "out")
        chosen = {program: [tool for tool in tools(heap_profile, out, shutil.which(program.executable))
                            if small or not tool.small] for program, small in programs}
        for program, tool in [(program, tool) for _ in range(rounds) for program in chosen for tool in chosen[program]]:
            key = (program.name, tool.name)
            if tool.missing:
                reasons[key] = f"not measured: {tool.missing}"
            if key in reasons or time.monotonic() > deadline:
                continue
            try:
                found[key].append(run_once(program, tool, out, deadline))
            except (OSError, RuntimeError, subprocess.SubprocessError) as error:
                if time.monotonic() < deadline - 2:  # else the time was over
                    reasons[key] = f"failed: {error}"
        print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}, {rounds} rounds, least of each; ratios are to plain\n")
        print_table(chosen, found, rounds, reasons)
