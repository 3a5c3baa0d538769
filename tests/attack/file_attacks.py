"""Hostile files: what a request hands over as trace and standard error, and traces and queries that never end."""

import mmap
import os
import re
import signal
import socket
import subprocess
import time
import zlib

import fuse_server
import trace_pb2
from attack_tools import (ALICE, HELLO_LIMIT_S, MALLORY, ROOT, Child, ChildFailed, Figure, Impossible, attack,
                          comes_true, cpu_seconds, folder_of, least)
from hostile_requests import CONTROL_STARTED, Hellos, connect, receive_answer, send_start, start_request
from profile_run import HEAP_PROFILE
from service_run import full_pipe
from service_under_attack import Recorder, Service

MAPPED_LIMIT_S = 2.5  # a program that hangs is waited for half a second
START_LIMIT_S = 1.0
ENDED_LIMIT_S = 15  # with symbols, each file of which is waited for


def odd_files(folder, node):
    """(name, descriptor, whether a recording may have it as its trace) of what is no ordinary file, or a slow one."""
    os.mkfifo(f"{folder}/fifo")
    with open(f"{folder}/empty", "w"):
        pass
    yield "fifo", os.open(f"{folder}/fifo", os.O_RDWR), False
    yield "device", os.open("/dev/full", os.O_RDWR), False
    yield "full pipe", full_pipe()[1], False
    yield "socket", socket.socketpair()[0].detach(), False
    yield "folder", os.open(folder, os.O_RDONLY), False
    yield "file of /proc", os.open("/proc/self/comm", os.O_RDWR), False
    yield "read-only file", os.open(f"{folder}/empty", os.O_RDONLY), True
    yield "appending file", os.open(f"{folder}/empty", os.O_RDWR | os.O_APPEND), True
    os.mkdir(f"{folder}/fuse")
    try:
        fuse_server.enter_user_namespace()
        server = fuse_server.FuseServer(node, f"{folder}/fuse", b"x" * 4096,
                                        [fuse_server.WRITE, fuse_server.GETATTR], silent_s=3)
    except OSError:
        return  # an ordinary user cannot mount here
    descriptor = os.open(f"{folder}/fuse/{fuse_server.NAME}", os.O_RDWR)
    server.arm()
    yield "file of a silent FUSE", descriptor, False
    server, path = fuse_server.mount_overlay(node, [fuse_server.GETATTR], silent_s=3)
    descriptor = os.open(path, os.O_RDONLY)
    server.arm()
    yield "file of an overlay over a silent FUSE", descriptor, False


def request_odd_files(path, node, tell):
    """Each as the trace, and as standard error."""
    folder = f"/tmp/odd_{os.getpid()}"
    os.mkdir(folder)
    accepted = []
    count = 0
    trace = os.open(f"{folder}/trace", os.O_RDWR | os.O_CREAT, 0o600)
    null = os.open("/dev/null", os.O_RDWR)
    for name, odd, is_harmless in odd_files(folder, node):
        for fds in ([odd, null], [trace, odd]):
            with connect(path) as connection:
                send_start(connection, start_request(["nobody"], trace_path=f"{folder}/trace"), fds)
                answer = receive_answer(connection)
                count += answer is not None
                if fds[0] == odd and not is_harmless and answer and answer[0] == CONTROL_STARTED:
                    accepted.append(name)
    tell([count, accepted])
    signal.pause()


def map_silent_file(tell, node, go_fd):
    """As an ordinary user: a process that maps code of an overlay over a FUSE, which then does not answer its open."""
    server, path = fuse_server.mount_overlay(node, [fuse_server.OPEN], silent_s=30)
    with open(path, "rb") as file:
        code = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ | mmap.PROT_EXEC, flags=mmap.MAP_PRIVATE)
    server.arm()
    tell(os.getpid())
    os.read(go_fd, 1)
    for _ in range(200):
        bytearray(300_000)  # which are sampled
    tell("allocated")
    while code:
        bytearray(300_000)


def recordings_of_a_silent_mapping(node):
    """Seconds until root's recording of mallory's process has begun, until his next one has, and until the first one
    has ended."""
    go_read, go = os.pipe()
    child = Child(MALLORY, lambda tell: map_silent_file(tell, node, go_read))
    try:
        pid = child.next(20)
    except ChildFailed as error:
        raise Impossible(f"an ordinary user cannot mount FUSE and overlay here: {error}") from error
    os.close(go_read)
    with Service() as place:
        begin = time.monotonic()
        recorder = Recorder(place, ROOT, "-p", str(pid), "-i", "4096")
        attached = time.monotonic()
        os.write(go, b"x")
        os.close(go)
        child.next(20)
        before = time.monotonic()
        Recorder(place, ROOT, "-n", "nobody_has_this_name")
        other = time.monotonic()
        recorder.process.send_signal(signal.SIGINT)
        recorder.process.wait()
        end = time.monotonic()
        text = recorder.text()
    child.kill()
    return attached - begin, other - before, end - other, text


@attack("mapped-overlay", "", 120)
def mapped_overlay(_):
    """A program that root records maps a file of an overlay over a FUSE that does not answer when it is opened."""
    node = fuse_server.device()
    attached, other, ended, text = recordings_of_a_silent_mapping(node)
    return [Figure("root's recording of the program begins", attached, "s", MAPPED_LIMIT_S),
            Figure("root's next recording begins", other, "s", MAPPED_LIMIT_S),
            Figure("the first one ends", ended, "s", ENDED_LIMIT_S),
            Figure("what could not be opened is not told", 0 if "could not be opened in time" in text else 1, "", 0)]


def is_readable(path, patience_s):
    """Whether a file can be read in this time, by a process that may be left behind."""
    reader = subprocess.Popen(["/bin/cat", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        reader.wait(patience_s)
        return True
    except subprocess.TimeoutExpired:
        reader.kill()
        return False


@attack("held-mappings", "")
def held_mappings(is_quick):
    """Processes of mallory's, which root and alice look through for a name, hold the kernel's lock on their own mappings."""
    node = fuse_server.device()
    count, silent_s = (4, 6) if is_quick else (20, 24)

    def hold(tell):
        tell(fuse_server.hold_own_mappings(node, count, silent_s))
        signal.pause()

    with Service() as place, Hellos(place) as hellos:
        child = Child(MALLORY, hold)
        try:
            holders = child.next(20)
        except ChildFailed as error:
            raise Impossible(f"an ordinary user cannot mount FUSE here: {error}") from error
        if not comes_true(lambda: not is_readable(f"/proc/{holders[-1]}/cmdline", 0.1), silent_s / 3):
            raise Impossible("to map a file of FUSE holds up nobody here")
        begin = time.monotonic()
        Recorder(place, ROOT, "-n", "nobody_has_this_name")
        first = time.monotonic()
        Recorder(place, ROOT, "-n", "nobody_has_this_name")
        second = time.monotonic()
        Recorder(place, ALICE, "-n", "nobody_has_this_name")
        third = time.monotonic()
        worst = hellos.worst()
        child.kill()
    return [Figure(f"root's recording by name begins while {count} processes hold their mappings", first - begin, "s",
                   START_LIMIT_S),
            Figure("root's next recording begins", second - first, "s", START_LIMIT_S),
            Figure("alice's recording by name begins", third - second, "s", START_LIMIT_S),
            Figure("alice's slowest Hello meanwhile", worst, "s", HELLO_LIMIT_S)]


@attack("odd-descriptors", "")
def odd_descriptors(_):
    """Traces and standard errors that are pipes, devices, sockets, files of /proc or of a FUSE that is silent."""
    node = fuse_server.device()
    accepted = []

    def request():
        with Service() as place, Hellos(place) as hellos:
            child = Child(MALLORY, lambda tell: request_odd_files(place.socket, node, tell))
            accepted.append(child.next(30) or [0, []])
            worst = hellos.worst()
            child.kill()
            return worst
    worst = least(request, HELLO_LIMIT_S, 2)
    count, names = accepted[-1]
    return [Figure(f"accepted as a trace: {', '.join(names) or 'none'}", len(names), "", 0),
            Figure("requests that were answered", count, ""),
            Figure("alice's slowest Hello meanwhile", worst, "s", HELLO_LIMIT_S)]


def seconds_of(command, patience_s):
    """How long a command takes, at most so long."""
    begin = time.monotonic()
    try:
        subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=patience_s, check=False)
    except subprocess.TimeoutExpired:
        pass
    return time.monotonic() - begin


def write_bomb(path, unpacked_gib):
    """A thousandth of that on disk: compressed packets without a field."""
    unpacked = b"\x0a\x00" * (32 << 20)
    packet = trace_pb2.Trace(packet=[trace_pb2.TracePacket(compressed_packets=zlib.compress(unpacked, 9))])
    piece = packet.SerializeToString()
    with open(path, "wb") as file:
        for _ in range((unpacked_gib << 30) // len(unpacked)):
            file.write(piece)


@attack("trace-bomb", "L1", 120)
def trace_bomb(is_quick):
    """Empty packets in compressed ones: 48 GiB of them in 48 MiB, or, in short, a quarter of that."""
    unpacked_gib, limit_s = (12, 8) if is_quick else (48, 20)
    path = os.path.join(folder_of(ROOT), "bomb.trace")
    write_bomb(path, unpacked_gib)
    commands = {"query": ["query", path, "select 1"], "traceconv profile": ["traceconv", "profile", path]}
    return [Figure(f"{name} of {unpacked_gib} GiB in {unpacked_gib} MiB (looked at for {2 * limit_s} s)",
                   seconds_of([HEAP_PROFILE, *commands[name]], 2 * limit_s), "s", limit_s)
            for name in (["query"] if is_quick else commands)]


INTERRUPT_LIMIT_S = 2
ONE_TRACE = "main;f 1\n"


@attack("sql-bomb", "L2", 60)
def sql_bomb(is_quick):
    """A query that is one long step of the database: how long after Ctrl-C does it go on?"""
    path = os.path.join(folder_of(ROOT), "folded")
    with open(path, "w") as file:
        file.write(ONE_TRACE)
    process = subprocess.Popen([HEAP_PROFILE, "query", path, "SELECT length(printf('%.*c',1000000000,'x'))"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    comes_true(lambda: process.poll() is not None or cpu_seconds(process.pid) > 0.5, 10)  # it is at it
    if process.poll() is not None:
        text = process.communicate()[1].decode(errors="replace")
        return [Figure(f"ended by itself: {re.sub(r'[^ -~]', ' ', text)[:60]}", 0, "s", INTERRUPT_LIMIT_S)]
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    try:
        process.wait(5 if is_quick else 30)
    except subprocess.TimeoutExpired:
        pass
    delay = time.monotonic() - begin
    process.kill()
    return [Figure("query goes on after the first Ctrl-C", delay, "s", INTERRUPT_LIMIT_S)]
