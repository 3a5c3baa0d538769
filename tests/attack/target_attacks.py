"""Programs of mallory's that root records, and that turn against the recorder: its memory, and its rights."""

import os
import shutil
import signal
import subprocess

from attack_tools import MALLORY, ROOT, Figure, attack, comes_true, folder_of, start_as
from profile_run import program
from service_under_attack import Recorder, Service

HOSTILE_TARGET = program("hostile_target")
MADE_BY_RESOLVER = "/tmp/made_by_resolver"
RECORDED_S = 1.0
END_S = 20


def start_target(*arguments):
    process = start_as(MALLORY, [HOSTILE_TARGET, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                       stderr=subprocess.DEVNULL)
    assert process.stdout.readline() == "ready\n", f"hostile_target {arguments} has failed"
    return process


def end_target(process):
    """What it has said, and whether it has ended well."""
    process.stdin.close()
    try:
        said = process.stdout.read()
        return said, process.wait(END_S) == 0
    except subprocess.TimeoutExpired:
        process.kill()
        return "", False


def end_recording(recorder):
    recorder.process.send_signal(signal.SIGINT)
    comes_true(recorder.has_ended, END_S)
    return recorder.text()


@attack("target-memory", "", 120)
def target_memory(is_quick):
    """A program that root attaches to maps the memory files for writing as soon as it has descriptors of them, and
    writes numbers that the engine needs."""
    mapped = killed = dead = 0
    with Service() as place:
        for _ in range(2 if is_quick else 20):
            process = start_target("memory", folder_of(MALLORY))
            recorder = Recorder(place, ROOT, "-i", "1", "-d", str(int(RECORDED_S * 1000)), "-p", str(process.pid),
                                must_begin=False)
            comes_true(recorder.has_ended, END_S)
            killed += "the service ended" in recorder.text() or not place.is_alive()
            said, is_well = end_target(process)
            mapped += int(said or 0)
            dead += not is_well
    return [Figure("memory files of the engine's that were mapped writable", mapped, "", 0),
            Figure("engines that were killed", killed, "", 0), Figure("programs that were killed", dead, "", 0)]


@attack("target-escape", "", 170)
def target_escape(is_quick):
    """A program under a seccomp filter leads the thread astray that root's engine has borrowed: its stack, code and
    registers are written by another thread, or by a process that shares its memory."""
    escaped = dead = untold = 0
    with Service() as place:
        for _ in range(1 if is_quick else 10):
            for way in ("stack", "code", "registers", "process"):
                directory = os.path.join(folder_of(MALLORY), "escaped")
                process = start_target(way, directory)
                recorder = Recorder(place, ROOT, "-d", "200", "-p", str(process.pid), must_begin=False)
                comes_true(recorder.has_ended, END_S)
                escaped += os.path.exists(directory)
                untold += "too much runs on this machine" in recorder.text()
                dead += process.poll() is not None
                process.kill()
    return [Figure("calls that the filter refuses and that were made", escaped, "", 0),
            Figure("reasons that are told and were not found out", untold, "", 0),
            Figure("programs that were killed", dead, "", 0)]


@attack("start-escape", "", 120)
def start_escape(is_quick):
    """The same of a program that root records by name from its start: it makes its calls in the loader, before main."""
    name = "escapee"
    count = 3 if is_quick else 20
    folder = folder_of(MALLORY)
    shutil.copy(program("hostile_resolver"), os.path.join(folder, name))
    with Service() as place:
        recorder = Recorder(place, ROOT, "-n", name)
        sandbox = start_as(MALLORY, [HOSTILE_TARGET, "sandbox", os.path.join(folder, name),
                                     os.path.join(folder, "never"), str(count)])
        ended = sandbox.wait(END_S * 3)
        text = end_recording(recorder)
    return [Figure("starts at which a call was made that the filter refuses", os.path.exists(MADE_BY_RESOLVER), "", 0),
            Figure("sandboxes that did not come to their end", ended != 0, "", 0),
            Figure("programs that were not recorded", "no process" in text, "", 0)]
