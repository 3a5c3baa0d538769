"""Hostile files: traces and queries that never end."""

import os
import resource
import signal
import subprocess
import time
import zlib

import trace_pb2
from attack_tools import ROOT, Figure, attack, comes_true, cpu_seconds, folder_of, patience
from profile_run import HEAP_PROFILE


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
