"""Attacks on who asks and on who is recorded: false services, sessions held up by their own programs, services that are
killed or stopped while they attach.
"""

import array
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import time

import wake_page
from attack_tools import (ALICE, HOSTILE_CLIENT, MALLORY, ROOT, UNTIL_THE_END, Child, Figure, Impossible, attack,
                          comes_true, cpu_seconds, folder_of, kill_if_there, patience, start_as)
from hostile_requests import (CONTROL_DONE, CONTROL_NOTE, CONTROL_PREPARE, CONTROL_READY, CONTROL_STARTED,
                              control_message)
from profile_run import HEAP_PROFILE, RUNS_32_BIT, program
from service_under_attack import Recorder, Service, processes_of_product, programs_not_recorded, service_processes

SECRET = "https://user:token@debuginfod.example"
ESCAPE = b"\033]0;hostile\007\033[2J"


def serve_falsely(place, link, tell):
    """Listens in `place`, under the name `link` when there is one, and keeps what it is given."""
    os.makedirs(place, exist_ok=True)
    os.chmod(place, 0o755)
    if link:
        os.symlink(place, link)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{place}/socket")
    os.chmod(f"{place}/socket", 0o777)
    listener.listen()
    tell("listening")
    while True:
        connection, _ = listener.accept()
        connection.settimeout(3)
        fds, text = 0, b""
        try:
            while len(text) < 16 or len(text) < 16 + struct.unpack_from("<QII", text)[2]:
                part, ancillary, _, _ = connection.recvmsg(1 << 16, 4096)
                for _, _, content in ancillary:
                    for fd in array.array("i", content):
                        os.close(fd)
                        fds += 1
                text += part
                if not part:
                    break
                if text == control_message(CONTROL_PREPARE, b""):
                    connection.send(control_message(CONTROL_READY, b""))
                    text = b""
            connection.send(control_message(CONTROL_NOTE, b"[sudo] password for root: " + ESCAPE) +
                            control_message(CONTROL_STARTED, b"") + control_message(CONTROL_DONE, b"0"))
        except OSError:
            pass
        connection.close()
        tell([fds, int(SECRET.encode() in text)])


def visit(victim, environment):
    """A user's heap_profile -p; what it has printed."""
    target = start_as(victim, ["/bin/sleep", "30"])
    command = [HEAP_PROFILE, "--no-start", "-o", f"{folder_of(victim)}/out", "-p", str(target.pid), "-d", "200"]
    process = start_as(victim, command, env={"PATH": os.environ["PATH"], "DEBUGINFOD_URLS": SECRET, **environment},
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        output, _ = process.communicate(timeout=4)
    except subprocess.TimeoutExpired:
        process.kill()
        output, _ = process.communicate()
    target.kill()
    target.wait()
    assert output, "heap_profile says nothing"
    return output


# Where a false service may wait, and how its victim comes there: (victim, place, link, victim's environment).
FALSE_PLACES = {
    "root's folder in /tmp": (ROOT, "/tmp/heapprofd-0", None, {}),
    "a link for root's folder in /tmp": (ROOT, "/tmp/elsewhere_0", "/tmp/heapprofd-0", {}),
    "alice's folder in /tmp": (ALICE, f"/tmp/heapprofd-{ALICE}", None, {}),
    "a link for alice's folder in /tmp": (ALICE, "/tmp/elsewhere_alice", f"/tmp/heapprofd-{ALICE}", {}),
    "mallory's XDG_RUNTIME_DIR, kept by su": (ROOT, "/tmp/run/heapprofd", None, {"XDG_RUNTIME_DIR": "/tmp/run"}),
    "alice with mallory's XDG_RUNTIME_DIR": (ALICE, "/tmp/run/heapprofd", None, {"XDG_RUNTIME_DIR": "/tmp/run"}),
    "mallory's HEAPPROFD_DIRECTORY, root": (ROOT, "/tmp/named", None, {"HEAPPROFD_DIRECTORY": "/tmp/named"}),
    "mallory's HEAPPROFD_DIRECTORY, alice": (ALICE, "/tmp/named", None, {"HEAPPROFD_DIRECTORY": "/tmp/named"}),
}


@attack("fake-service", "C1", 60)
def fake_service(_):
    """Mallory's service waits where root's and alice's heap_profile look for theirs."""
    descriptors = secrets = escapes = 0
    taken_in = []
    for name, (victim, place, link, environment) in FALSE_PLACES.items():
        child = Child(MALLORY, lambda tell, place=place, link=link: serve_falsely(place, link, tell))
        answer = child.next(5)
        assert answer == "listening", answer
        output = visit(victim, environment)
        heard = []
        while (part := child.next(0.3)) is not None:
            heard.append(part)
        child.kill()
        fds, secret = (sum(column) for column in zip(*heard)) if heard else (0, 0)
        descriptors, secrets, escapes = descriptors + fds, secrets + secret, escapes + output.count(b"\033")
        taken_in += [name] if fds or secret else []
        for path in (link, place):
            if path and os.path.islink(path):
                os.unlink(path)
            elif path:
                shutil.rmtree(path)
    return [Figure(f"of {len(FALSE_PLACES)} places that take in their victim", len(taken_in), "", 0),
            Figure("descriptors that mallory was given", descriptors, "", 0),
            Figure("requests with the victim's environment", secrets, "", 0),
            Figure("escape characters on the victim's terminal", escapes, "", 0)]


# Documented in docs/custom-allocators.md: 1 s.
NOTICE_LIMIT_S = 2


def storm_of_wakes(directory, seconds, tell):
    page = wake_page.WakePage(directory)
    end = time.monotonic() + seconds
    woken = 0
    while time.monotonic() < end:
        woken += page.wake()
    tell(woken)


def move_for_ever(directory, tell):
    page = wake_page.WakePage(directory)
    wake_page.move_one(directory)
    tell("moved")
    while True:
        page.move()


def enabled_calls(target):
    target.stdin.write("s")
    target.stdin.flush()
    return int(target.stdout.readline().split()[0])


@attack("wake-page", "")
def wake_page_of_all(is_quick):
    """Mallory wakes the threads of alice's programs that wait for a session, and moves them where nobody wakes them."""
    if not wake_page.IS_WAITED_AT:
        raise Impossible("this kernel has no futex_waitv")
    seconds = 1 if is_quick else 5
    with Service() as place:
        targets = [start_as(ALICE, [program("switched")], env={"HEAPPROFD_DIRECTORY": place.directory}, text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(10)]
        for target in targets:
            assert target.stdout.readline() == "ready\n"
        before = sum(cpu_seconds(target.pid) for target in targets)
        child = Child(MALLORY, lambda tell: storm_of_wakes(place.directory, seconds, tell))
        woken = child.next(seconds + 30)
        child.kill()
        spent = sum(cpu_seconds(target.pid) for target in targets) - before
        child = Child(MALLORY, lambda tell: move_for_ever(place.directory, tell))
        assert child.next(30) == "moved"
        Recorder(place, ROOT, "-n", "switched", "--all-heaps", "--no-startup")
        begin = time.monotonic()
        comes_true(lambda: all(enabled_calls(target) > 0 for target in targets), patience(NOTICE_LIMIT_S))
        noticed = time.monotonic() - begin
        child.kill()
        for target in targets:
            target.kill()
            target.wait()
        return [Figure("wakes of a program in a second", woken / seconds / len(targets), "", 25, floor=1),
                Figure("a processor's time that they cost ten programs", 100 * spent / seconds, "%", 10),
                Figure("until ten programs that are moved notice a recording", noticed, "s", NOTICE_LIMIT_S,
                       seen_up_to=patience(NOTICE_LIMIT_S))]


SILENT_PROGRAM = """
import os, socket, subprocess, time
path = os.environ["HEAPPROFD_SESSION"].split(",")[-1]
silent = []
for _ in range(60):
    silent.append(socket.socket(socket.AF_UNIX))
    silent[-1].settimeout(1)
    try:
        silent[-1].connect(path)
    except OSError:
        silent.pop()
begin = time.monotonic()
subprocess.run(["/bin/true"])
print(len(silent), time.monotonic() - begin)
"""


@attack("silent-connections", "M2")
def silent_connections(_):
    """A recorded program opens 60 connections to its session and says nothing; the next program reports."""
    result = subprocess.run([HEAP_PROFILE, "-q", "-o", f"{folder_of(ROOT)}/out", "--", "/usr/bin/python3", "-c",
                             SILENT_PROGRAM], capture_output=True, text=True, timeout=50, check=False)
    silent, seconds = result.stdout.split()[-2:]
    return [Figure("connections that say nothing", int(silent), "", floor=30),
            Figure("start of the next program", float(seconds), "s", 1, seen_up_to=UNTIL_THE_END),
            Figure("programs not recorded", programs_not_recorded(result.stderr), "", 0)]


LIBC_32 = ("/lib32/libc.so.6", "/lib/i386-linux-gnu/libc.so.6")


@attack("32-bit", "M4")
def thirty_two_bit(_):
    """A recorded 64-bit program starts a 32-bit one: does ld.so complain on its standard error?"""
    if not RUNS_32_BIT:
        raise Impossible("nothing here runs 32-bit programs")
    path = next((path for path in LIBC_32 if os.access(path, os.X_OK)), None)
    if path is None or not os.path.exists("/lib/ld-linux.so.2"):
        raise Impossible("there is no 32-bit libc on this machine")
    command = ["/bin/sh", "-c", f"{path}; true"]
    result = subprocess.run([HEAP_PROFILE, "-q", "-o", f"{folder_of(ROOT)}/out", "--", *command], capture_output=True,
                            text=True, timeout=50, check=False)
    assert result.returncode == 0 and "C Library" in result.stdout, f"the program has not run: {result}"
    return [Figure("complaints of ld.so", result.stderr.count("ERROR: ld.so"), "", 0)]


def is_traced(pid):
    """Any of its threads."""
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/status") as status:
            if "TracerPid:\t0\n" not in status.read():
                return True
    return False


# Calls that a stop ends with EINTR when nobody begins them anew, see docs/recording.md "What a program notices". Whom a
# kill lets end early depends on the microseconds in which it comes (traced_thread_test has those in which it may not).
END_EARLY = {"epoll_wait", "epoll_pwait", "epoll_pwait2", "sigtimedwait", "recv", "read", "recvmsg", "send", "write", "accept", "semtimedop"}


@attack("killed-service", "L4", 120)
def killed_service(is_quick):
    """kill -9 of the service at any moment of attaching: system calls that end with EINTR, targets that die."""
    dice = random.Random(2)
    rounds = 12 if is_quick else 100
    sleepers = subprocess.Popen([program("sleepers")], stdout=subprocess.PIPE, text=True)
    assert sleepers.stdout.readline() == "ready\n"
    traced = 0
    for _ in range(rounds):
        with Service() as place:
            Recorder(place, ROOT, "-p", str(sleepers.pid), must_begin=False)
            end = time.monotonic() + 2
            while not (is_now := is_traced(sleepers.pid)) and time.monotonic() < end:
                pass
            traced += is_now
            end = time.monotonic() + dice.random() * 0.003
            while time.monotonic() < end:
                pass
            for pid in service_processes():
                kill_if_there(pid, signal.SIGKILL)
    died = sleepers.poll() is not None
    sleepers.terminate()
    output, _ = sleepers.communicate(timeout=20)
    interrupted = {name: int(count) for name, count in re.findall(r"^(.+): (\d+) of \d+ interrupted$", output, re.M)}
    early = [count for name, count in interrupted.items() if name in END_EARLY]
    return [Figure("kills while it was traced", traced, "", floor=rounds // 4),
            Figure("calls interrupted that the kernel begins anew itself", sum(interrupted.values()) - sum(early), "", 0),
            Figure(f"others, of {len(END_EARLY)} threads that wait", sum(early), ""),
            Figure(f"the most of one thread, by {rounds} kills", max(early, default=0), "", rounds),
            Figure("targets that died", int(died), "", 0)]


PAUSE_LIMIT_MS = 1250


def longest_pause(process, stop, stopped_s):
    """Of an allocation in a program whose recorder, stop()'s processes, is stopped for a while; ms."""
    assert process.stdout.readline() == "ready\n"
    pids = stop()
    assert pids, "nobody records"
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(stopped_s)
    for pid in pids:
        kill_if_there(pid, signal.SIGCONT)
    output, _ = process.communicate(timeout=20)  # closes its input
    return int(output)


@attack("stopped-engine", "L5", 60)
def stopped_engine(is_quick):
    """SIGSTOP to whoever records: how long does one malloc of the program wait?"""
    stopped_s = max(patience(PAUSE_LIMIT_MS / 1000), 0 if is_quick else 5)
    allocate = [HOSTILE_CLIENT, "allocate"]
    command = [HEAP_PROFILE, "-q", "-i", "1", "-o", f"{folder_of(ROOT)}/out", "--", *allocate]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    own = longest_pause(subprocess.Popen(command, stderr=subprocess.DEVNULL, **pipes), processes_of_product, stopped_s)
    with Service() as place:
        process = subprocess.Popen(allocate, **pipes)
        Recorder(place, ROOT, "-i", "1", "-p", str(process.pid))
        attached = longest_pause(process, service_processes, stopped_s)
    return [Figure(f"longest malloc, heap_profile -- stopped for {stopped_s} s", own, "ms", PAUSE_LIMIT_MS,
                   seen_up_to=1000 * stopped_s),
            Figure(f"longest malloc, attached, service stopped for {stopped_s} s", attached, "ms", PAUSE_LIMIT_MS,
                   seen_up_to=1000 * stopped_s)]
