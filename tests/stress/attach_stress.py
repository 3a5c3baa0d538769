#!/usr/bin/env python3
"""Attaches to processes under the worst circumstances, and counts what went wrong. Needs root.

HEAP_PROFILE=... TEST_PROGRAMS=... PYTHONPATH=tests/e2e:... attach_stress.py [--short]

Ends with 1 when a target died, hung, was corrupted or kept changed code.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from profile_run import program
from running_process import MAY_ATTACH, MAY_CATCH, Engine, Running, changed_code_bytes, state_of, storm, wait_until
from verdict import Verdict


def check_target(target, what, verdict):
    """The target lives, is not stopped, and its code is as in its files."""
    if target.process.poll() is not None:
        verdict.check(f"{what}: died with {target.process.returncode}", False)
        return
    verdict.check(f"{what}: is stopped", state_of(target.pid) not in "tT")
    verdict.check(f"{what}: its code is changed", changed_code_bytes(target.pid) == 0)


def end_well(target, what, verdict, may_be_interrupted=False):
    """The target's own verdict on what it saw."""
    target.process.terminate()
    output, _ = target.process.communicate(timeout=60)
    is_good = target.process.returncode == 0 or may_be_interrupted and "corrupted 0 failed_children 0" in output
    verdict.check(f"{what}: ended with {target.process.returncode}: {output}", is_good)


def cycles(count, verdict):
    """Attach and detach again and again: one target."""
    with storm(100_000) as target, Engine() as engine:
        for i in range(count):
            attached = engine.attach(target.pid, 20, ["-q"])
            verdict.check(f"cycle {i}: {attached.result.stderr}", attached.result.returncode in (0, 4))
        check_target(target, "cycles", verdict)
        end_well(target, "cycles", verdict)


def allocators():
    """Environments with each allocator that can be preloaded."""
    yield "libc", dict(os.environ)
    for name in ["libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2.0"]:
        path = os.path.join("/usr/lib/x86_64-linux-gnu", name)
        if os.path.exists(path):
            yield name, dict(os.environ, LD_PRELOAD=path)


def fresh_targets(count, verdict):
    """A target of its own each time, at any moment of its start."""
    kinds = list(allocators())
    with Engine() as engine:
        for i in range(count):
            kind, environment = kinds[i % len(kinds)]
            process = subprocess.Popen([program("storm"), "100"], stdout=subprocess.PIPE, text=True, env=environment)
            time.sleep(random.random() * 0.05)
            attached = engine.attach(process.pid, 10, ["-q"])
            what = f"fresh {i} with {kind}"
            if process.poll() is not None:
                verdict.check(f"{what}: died with {process.returncode}; {attached.result.stderr}", False)
                continue
            verdict.check(f"{what}: code is changed", changed_code_bytes(process.pid) == 0)
            process.terminate()
            output, _ = process.communicate(timeout=60)
            # Before it has set itself up, the signal is its end.
            verdict.check(f"{what}: ended with {process.returncode}: {output}", process.returncode in (0, -15))


def short_lives(count, verdict):
    """Targets that exec and exit while being attached to: they must end as without us."""
    script = f"exec sh -c 'exec {program('first_allocations')}'"
    with Engine() as engine:
        for i in range(count):
            process = subprocess.Popen(["sh", "-c", script])
            time.sleep(random.random() * 0.01)
            engine.attach(process.pid, 10, ["-q"])
            verdict.check(f"short life {i}: ended with {process.wait()}", process.returncode == 0)


def sleepers(count, verdict):
    """System calls that a stop could end with EINTR."""
    with Running([program("sleepers")]) as target, Engine() as engine:
        for i in range(count):
            attached = engine.attach(target.pid, 10, ["-q"])
            verdict.check(f"sleepers {i}: {attached.result.stderr}", attached.result.returncode in (0, 4))
        end_well(target, "sleepers", verdict)


def ticks_of(pid):
    """CPU time of a process so far, in hundredths of a second."""
    with open(f"/proc/{pid}/stat") as file:
        return sum(int(field) for field in file.read().rsplit(")", 1)[1].split()[11:13])


def stopped(count, verdict):
    """A process that somebody has stopped stays so, and goes on when it is told to. In every other round it runs only for
    a moment in between. Where a thread was stopped in the first instructions of malloc it is refused."""
    refusals = 0
    with storm(100_000) as target, Engine() as engine:
        for i in range(count):
            os.kill(target.pid, signal.SIGSTOP)
            wait_until(lambda: state_of(target.pid) == "T")
            attached = engine.attach(target.pid, 10, ["-q"])
            if "do not leave the first instructions" in attached.result.stderr:
                refusals += 1
            else:
                verdict.check(f"stopped {i}: {attached.result.stderr}", attached.result.returncode in (0, 4))
            # The kernel has it stop anew when its tracer leaves, once there is a processor for that.
            wait_until(lambda: state_of(target.pid) in "TZ")
            ran = ticks_of(target.pid)
            os.kill(target.pid, signal.SIGCONT)
            wait_until(lambda: state_of(target.pid) != "T")
            if i % 2 == 1:  # all of its threads, hopefully
                wait_until(lambda: state_of(target.pid) == "Z" or ticks_of(target.pid) > ran + 3)
        check_target(target, "stopped", verdict)
        end_well(target, "stopped", verdict)
    verdict.check(f"stopped: {refusals} of {count} attempts were refused", refusals <= max(2, count * 2 / 3))


def crowds(count, verdict):
    """Many threads, and a process whose main thread has ended."""
    for what, command in [("1,000 threads", ["1000"]), ("zombie leader", ["10", "zombie"])]:
        with Running([program("crowd"), *command]) as target, Engine() as engine:
            for i in range(count):
                attached = engine.attach(target.pid, 50, ["-q"])
                verdict.check(f"{what} {i}: {attached.result.stderr}", attached.result.returncode in (0, 4))
                if attached.stats:
                    print(f"  {what}: stopped {attached.stats['attach_all_threads_us'] / 1000:.1f} ms, "
                          f"{attached.stats['detach_all_threads_us'] / 1000:.1f} ms", flush=True)
            verdict.check(f"{what}: its code is changed", changed_code_bytes(target.pid) == 0)
            # A zombie leader takes no signal from kill(2) to the process alone.
            end_well(target, what, verdict)


class KilledEngine(Engine):
    """One that is killed at the n-th of some system calls."""

    def __init__(self, calls, n):
        self.log = tempfile.NamedTemporaryFile()
        super().__init__(["strace", "-f", "-o", self.log.name, "-e", f"trace={calls}",
                          "-e", f"inject={calls}:signal=SIGKILL:when={n}"])

    def is_killed(self):
        """At one of the calls: processes that make none of them (workers) are killed by us as a rule."""
        with open(self.log.name) as log:
            lines = [line.split(maxsplit=1) for line in log]
        callers = {pid for pid, what in lines if not what.startswith(("+++", "---"))}
        return any(pid in callers and "killed by SIGKILL" in what for pid, what in lines)


def kills(passes, step, verdict):
    """kill -9 of the engine at its n-th ptrace or write, for every n; the next engine repairs."""
    for first in range(passes):
        n = 1 + first % step
        while True:
            with storm(100) as target:
                with KilledEngine("ptrace,pwrite64", n) as engine:
                    attached = engine.attach(target.pid, 20, ["-q"])
                is_killed = engine.is_killed()
                time.sleep(0.1)
                verdict.check(f"kill at {n}: died with {target.process.poll()}", target.process.poll() is None)
                with Engine() as engine:
                    repaired = engine.attach(target.pid, 20, ["-q"])
                verdict.check(f"kill at {n}: next engine: {repaired.result.stderr}", repaired.result.returncode in (0, 4))
                check_target(target, f"kill at {n}", verdict)
                # A system call that was just interrupted is begun anew by the engine, which is dead.
                end_well(target, f"kill at {n}", verdict, may_be_interrupted=True)
                # Killed before it had answered, another one was started, and killed at the same place.
                is_told = any(reason in attached.result.stderr
                              for reason in ("service ended before", "the other side has closed the connection"))
                verdict.check(f"kill at {n}: {attached.result.stderr}",
                              attached.result.returncode in (0, 4) or is_killed and is_told)
                if not is_killed:
                    break  # it did not get that far
            n += step


def killed_starts(step, verdict):
    """kill -9 of the engine at the n-th call with which it catches a program that is started."""
    n = 1
    while True:
        with KilledEngine("ptrace,pwrite64,perf_event_open", n) as engine:
            tool = engine.tool("-n", "first_allocations", stderr=subprocess.PIPE, text=True)
            while "Profiling active" not in (line := tool.stderr.readline()) and line:
                pass
            ended = subprocess.run([program("first_allocations")], timeout=60, check=False).returncode
            verdict.check(f"start, killed at {n}: ended with {ended}", ended == 0)
            tool.send_signal(signal.SIGINT)
            tool.communicate(timeout=60)
        if not engine.is_killed():
            print(f"  {n - 1} calls")
            return  # it did not get that far
        n += step


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="a few of each, for CI")
    parser.add_argument("--only", help="one kind of test")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    arguments = parser.parse_args()
    random.seed(arguments.seed)
    print(f"seed {arguments.seed}", flush=True)
    verdict = Verdict()
    short = arguments.short
    for name, work in [("cycles", lambda: cycles(10 if short else 500, verdict)),
                       ("fresh targets", lambda: fresh_targets(10 if short else 300, verdict)),
                       ("short lives", lambda: short_lives(10 if short else 300, verdict)),
                       ("sleepers", lambda: sleepers(10 if short else 100, verdict)),
                       ("stopped", lambda: stopped(3 if short else 50, verdict)),
                       ("crowds", lambda: crowds(3 if short else 20, verdict)),
                       ("kills", lambda: kills(1 if short else 10, 12 if short else 1, verdict)),
                       ("killed starts", lambda: killed_starts(8 if short else 1, verdict))]:
        if arguments.only not in (None, name):
            continue
        if name.startswith("kill") and not shutil.which("strace"):
            print(f"{name}: left out, strace is not installed")
            continue
        verdict.run(name, work)
    return verdict.end()


if __name__ == "__main__":
    if not (MAY_ATTACH and MAY_CATCH):
        print("cannot stress attaching: it is not allowed here; run it as root, outside of containers")
        sys.exit(0)
    sys.exit(main())
