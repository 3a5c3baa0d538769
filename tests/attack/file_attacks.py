"""Hostile files: what a request hands over as trace and standard error, and traces and queries that never end."""

import os
import resource
import signal
import socket
import subprocess
import time
import zlib

import fuse_server
import trace_pb2
from attack_tools import MALLORY, ROOT, Child, Figure, attack, comes_true, cpu_seconds, folder_of, patience
from hostile_requests import CONTROL_STARTED, Hellos, connect, receive_answer, send_start, start_request
from profile_run import HEAP_PROFILE
from service_run import full_pipe
from service_under_attack import Service


SILENT_S = 1  # alice is to wait for much less


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
                                        [fuse_server.WRITE, fuse_server.GETATTR], silent_s=SILENT_S)
    except OSError:
        return  # an ordinary user cannot mount here: that is told as fewer requests
    descriptor = os.open(f"{folder}/fuse/{fuse_server.NAME}", os.O_RDWR)
    server.arm()
    yield "file of a silent FUSE", descriptor, False
    server, path = fuse_server.mount_overlay(node, [fuse_server.GETATTR], silent_s=SILENT_S)
    descriptor = os.open(path, os.O_RDONLY)
    server.arm()
    yield "file of an overlay over a silent FUSE", descriptor, False


def request_odd_files(path, node, tell):
    """Each as the trace, and as standard error."""
    folder = f"/tmp/odd_{os.getpid()}"
    os.mkdir(folder)
    requests = []
    trace = os.open(f"{folder}/trace", os.O_RDWR | os.O_CREAT, 0o600)
    null = os.open("/dev/null", os.O_RDWR)
    for name, odd, is_harmless in odd_files(folder, node):
        for fds in ([odd, null], [trace, odd]):
            connection = connect(path)
            send_start(connection, start_request(["nobody"], trace_path=f"{folder}/trace"), fds)
            requests.append((connection, name if fds[0] == odd and not is_harmless else None))
    # All together: the service lets one user begin one in a second, when he wants many.
    answers = [(receive_answer(connection), forbidden) for connection, forbidden in requests]
    tell([sum(answer is not None for answer, _ in answers),
          [forbidden for answer, forbidden in answers if forbidden and answer and answer[0] == CONTROL_STARTED]])
    signal.pause()


@attack("odd-descriptors", "")
def odd_descriptors(_):
    """Traces and standard errors that are pipes, devices, sockets, files of /proc or of a FUSE that is silent."""
    node = fuse_server.device()
    with Service() as place, Hellos(place) as hellos:
        child = Child(MALLORY, lambda tell: request_odd_files(place.socket, node, tell))
        answer = child.next(30)
        assert answer, "the requests have not been answered"
        count, names = answer
        figures = hellos.figures()
        child.kill()
    return [Figure(f"accepted as a trace: {', '.join(names) or 'none'}", len(names), "", 0),
            Figure("requests that were answered, 20 where users can mount", count, "", floor=16),
            *figures]


def cpu_seconds_of(command, patience_s):
    """What a command takes that refuses its file because it unpacks to too much; `patience_s` when it had not ended
    then."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=patience_s, check=False)
        assert b"unpack" in result.stderr, result.stderr
    except subprocess.TimeoutExpired:
        return patience_s
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


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
    """Empty packets in compressed ones: 48 GiB of them in 48 MiB, or, in short, a twelfth of that."""
    unpacked_gib, limit_s = (4, 12) if is_quick else (48, 20)  # to read a GiB takes 10 s or longer
    path = os.path.join(folder_of(ROOT), "bomb.trace")
    write_bomb(path, unpacked_gib)
    commands = {"query": ["query", path, "select 1"], "traceconv profile": ["traceconv", "profile", path]}
    # Others may want the processors, too.
    return [Figure(f"processor time of {name}, {unpacked_gib} GiB in {unpacked_gib} MiB",
                   cpu_seconds_of([HEAP_PROFILE, *commands[name]], 2 * patience(limit_s)), "s", limit_s,
                   seen_up_to=2 * patience(limit_s))
            for name in (["query"] if is_quick else commands)]


INTERRUPT_LIMIT_S = 2
ONE_TRACE = "main;f 1\n"


@attack("sql-bomb", "L2", 60)
def sql_bomb(_):
    """A query that is one long step of the database: how long after Ctrl-C does it go on?"""
    path = os.path.join(folder_of(ROOT), "folded")
    with open(path, "w") as file:
        file.write(ONE_TRACE)
    process = subprocess.Popen([HEAP_PROFILE, "query", path, "SELECT length(printf('%.*c',1000000000,'x'))"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    is_at_it = comes_true(lambda: process.poll() is not None or cpu_seconds(process.pid) > 0.5, 20)
    assert is_at_it and process.poll() is None, f"the query is not at work: {process.stderr.read()}"
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    try:
        process.wait(patience(INTERRUPT_LIMIT_S))
    except subprocess.TimeoutExpired:
        pass
    delay = time.monotonic() - begin
    process.kill()
    return [Figure("query goes on after the first Ctrl-C", delay, "s", INTERRUPT_LIMIT_S,
                   seen_up_to=patience(INTERRUPT_LIMIT_S))]
