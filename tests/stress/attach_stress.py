#!/usr/bin/env python3
"""Attaches to processes under the worst circumstances, and counts what went wrong. Needs root.

HEAP_PROFILE=... TEST_PROGRAMS=... PYTHONPATH=tests/e2e:... attach_stress.py [--short]

Ends with 1 when a target died, hung, was corrupted or kept changed code.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

from profile_run import HEAP_PROFILE, program
from running_process import Attached, Engine, changed_code_bytes, state_of, storm


class Verdict:
    def __init__(self):
        self.problems = []

    def check(self, what, is_good):
        if not is_good:
            self.problems.append(what)
            print(f"  PROBLEM: {what}", flush=True)


def check_target(target, what, verdict):
    """The target lives, is not stopped, and its code is as in its files."""
    if target.process.poll() is not None:
        verdict.check(f"{what}: died with {target.process.returncode}", False)
        return
    verdict.check(f"{what}: is stopped", state_of(target.pid) not in "tT")
    verdict.check(f"{what}: its code is changed", changed_code_bytes(target.pid) == 0)


def cycles(count, verdict):
    """Attach and detach again and again: one target."""
    with storm(100_000) as target:
        for i in range(count):
            attached = Attached(target.pid, 20, ["-q"])
            verdict.check(f"cycle {i}: {attached.result.stderr}", attached.result.returncode == 0)
        check_target(target, "cycles", verdict)


def fresh_targets(count, verdict):
    """A target of its own each time, at any moment of its start."""
    for i in range(count):
        with subprocess.Popen([program("storm"), "100"], stdout=subprocess.DEVNULL) as process:
            time.sleep(random.random() * 0.05)
            attached = Attached(process.pid, 10, ["-q"])
            if process.poll() is not None:
                verdict.check(f"fresh {i}: died with {process.returncode}; {attached.result.stderr}", False)
            else:
                verdict.check(f"fresh {i}: code is changed", changed_code_bytes(process.pid) == 0)
            process.kill()


def short_lives(count, verdict):
    """Targets that exec and exit while being attached to: they must end as without us."""
    script = f"exec sh -c 'exec {program('first_allocations')}'"
    for i in range(count):
        process = subprocess.Popen(["sh", "-c", script])
        time.sleep(random.random() * 0.004)
        Attached(process.pid, 10, ["-q"])
        verdict.check(f"short life {i}: ended with {process.wait()}", process.returncode == 0)


def kills(passes, step, verdict):
    """kill -9 of the engine at its n-th ptrace or write, for every n; the next engine repairs."""
    for first in range(passes):
        n = 1 + first % step
        while True:
            with storm(100) as target:
                injection = f"inject=ptrace,pwrite64:signal=SIGKILL:when={n}"
                with Engine(["strace", "-o", "/dev/null", "-e", "trace=ptrace,pwrite64", "-e", injection]) as engine:
                    attached = engine.attach(target.pid, 20, ["-q"])
                    is_killed = engine.service.poll() is not None
                time.sleep(0.1)
                verdict.check(f"kill at {n}: died with {target.process.poll()}", target.process.poll() is None)
                repaired = Attached(target.pid, 20, ["-q"])
                verdict.check(f"kill at {n}: next engine: {repaired.result.stderr}", repaired.result.returncode == 0)
                check_target(target, f"kill at {n}", verdict)
                verdict.check(f"kill at {n}: {attached.result.stderr}", is_killed or attached.result.returncode == 0)
                if not is_killed:
                    break  # it did not get that far
            n += step


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="a few of each, for CI")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    arguments = parser.parse_args()
    random.seed(arguments.seed)
    print(f"seed {arguments.seed}", flush=True)
    verdict = Verdict()
    short = arguments.short
    for name, work in [("cycles", lambda: cycles(10 if short else 500, verdict)),
                       ("fresh targets", lambda: fresh_targets(10 if short else 300, verdict)),
                       ("short lives", lambda: short_lives(10 if short else 300, verdict)),
                       ("kills", lambda: kills(1 if short else 10, 12 if short else 1, verdict))]:
        if name == "kills" and not shutil.which("strace"):
            print("kills: left out, strace is not installed")
            continue
        begin = time.monotonic()
        work()
        print(f"{name}: done in {time.monotonic() - begin:.0f} s", flush=True)
    print(f"{len(verdict.problems)} problems")
    return 1 if verdict.problems else 0


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("cannot stress attaching: not root; run it as root")
        sys.exit(0)
    sys.exit(main())
