"""Programs that have the kernel wait with their mappings: their user's own file systems do not answer."""

import mmap
import os
import signal
import socket
import subprocess
import time

import fuse_server
import isolation
from attack_tools import (HOSTILE_CLIENT, MALLORY, ROOT, UNTIL_THE_END, Child, Figure, Impossible, Refused, attack,
                          comes_true, patience)
from hostile_requests import Hellos, connect, hello_bytes
from profile_run import HEAP_PROFILE
from service_under_attack import Recorder, Service, service_processes

MAPPED_LIMIT_S = 2.5  # a program that hangs is waited for half a second
START_LIMIT_S = 1.0
SILENT_S = 10
ENDED_LIMIT_S = 15  # with symbols, each file of which is waited for


def map_silent_file(tell, node, go_fd):
    """As an ordinary user: a process that maps code of an overlay over a FUSE, which then does not answer its open."""
    server, path = fuse_server.mount_overlay(node, [fuse_server.OPEN], SILENT_S)
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
    except Refused as error:
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
    return [Figure("root's recording of the program begins", attached, "s", MAPPED_LIMIT_S, seen_up_to=SILENT_S),
            Figure("root's next recording begins", other, "s", MAPPED_LIMIT_S, seen_up_to=SILENT_S),
            Figure("the first one ends", ended, "s", ENDED_LIMIT_S, seen_up_to=UNTIL_THE_END),
            Figure("what could not be opened is not told", 0 if "could not be opened in time" in text else 1, "", 0)]


# Longer than anything that is measured meanwhile; whoever has measured it ends it.
HELD_S = 30
SAME_USER_LIMIT_S = 6  # while an engine attaches, its user waits
ATTACHING_S = 2
NOBODY_NAME = "nobody_has_this_name"
NAME_OF_SILENT = "holder"
NAME_OF_HOLDERS = os.path.basename(HOSTILE_CLIENT)


def is_readable(path, patience_s):
    """Whether a file can be read in this time, by a process that may be left behind."""
    reader = subprocess.Popen(["/bin/cat", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        reader.wait(patience_s)
        return True
    except subprocess.TimeoutExpired:
        reader.kill()
        return False


def await_hang(pid, file="cmdline"):
    """Until nobody can read this file of /proc/PID."""
    assert comes_true(lambda: not is_readable(f"/proc/{pid}/{file}", 0.2), 10), f"process {pid} does not hang"


class Holders:
    """Programs of mallory's that say Hello and hold their own mappings: `count` after they were welcomed and as many
    before that (hostile_client hold); without any, one that says Hello in the midst of an exec."""

    def __init__(self, place, node, count):
        go_read, go = os.pipe()
        self._child = Child(MALLORY, lambda tell: self._hold(place, node, count, go_read, tell))
        try:
            hangs = self._child.next(40)
        except Refused as error:
            raise Impossible(f"an ordinary user cannot mount FUSE here: {error}") from error
        assert hangs, "not all of them hold their mappings"
        await_hang(hangs, "cmdline" if count else "syscall")
        os.write(go, b"x")
        assert self._child.next(10) == "said"

    @staticmethod
    def _hold(place, node, count, go_fd, tell):
        writer, trap = fuse_server.mapping_trap(node, HELD_S)
        for moment in ("late", "early"):
            programs = [subprocess.Popen([HOSTILE_CLIENT, "hold", place.socket, str(trap), moment], close_fds=False,
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(count)]
            if moment == "late":
                for program in programs:
                    assert program.stdout.readline() == b"welcomed\n", "a program is not recorded"
                for program in programs:
                    program.stdin.write(b"x")
                    program.stdin.flush()
            for program in programs:
                assert program.stdout.readline() == b"ready\n", f"a program does not hold ({moment})"
        if count:
            tell(programs[-1].pid)
            tell("said")
            signal.pause()
        ours, childs = socket.socketpair()

        def connect_first():
            with connect(place.socket) as connection:
                socket.send_fds(childs, [b"x"], [connection.fileno()])
        tell(fuse_server.hang_in_exec(writer, NAME_OF_HOLDERS, connect_first))
        _, fds, _, _ = socket.recv_fds(ours, 1, 1)
        os.read(go_fd, 1)
        os.write(fds[0], hello_bytes())
        tell("said")
        signal.pause()


def seconds_to_begin(place):
    begin = time.monotonic()
    Recorder(place, ROOT, "-n", NOBODY_NAME)
    return time.monotonic() - begin


def starts_beside_holders(place, count, hellos):
    """Figures of what others notice."""
    begins = [seconds_to_begin(place) for _ in range(2)]
    names = (f"root's recording by name begins while {count} programs hold their mappings", "root's next recording begins")
    return [*(Figure(name, seconds, "s", START_LIMIT_S, seen_up_to=HELD_S) for name, seconds in zip(names, begins)),
            *hellos.figures()]


def start_silent_holders(node, count):
    """Processes of mallory's that hold their mappings and say nothing."""
    def hold(tell):
        tell(fuse_server.hold_own_mappings(node, count, HELD_S))
        signal.pause()
    try:
        holders = Child(MALLORY, hold).next(20)
    except Refused as error:
        raise Impossible(f"an ordinary user cannot mount FUSE here: {error}") from error
    for pid in holders:
        await_hang(pid)
    return holders


def doctors_look(pid):
    """Figures of root's doctor, who looks into a process that hangs."""
    begin = time.monotonic()
    with subprocess.Popen([HEAP_PROFILE, "doctor", "-p", str(pid)], stdout=subprocess.PIPE, text=True) as doctor:
        comes_true(lambda: doctor.poll() is not None, patience(SAME_USER_LIMIT_S))
        seconds = time.monotonic() - begin
        doctor.kill()
        text = doctor.stdout.read()
    return [Figure("root's doctor looks at one of them", seconds, "s", SAME_USER_LIMIT_S,
                   seen_up_to=patience(SAME_USER_LIMIT_S)),
            Figure("the doctor does not tell that it hangs", 0 if "all of it in time" in text else 1, "", 0)]


@attack("held-mappings", "", 90)
def held_mappings(is_quick):
    """Processes of mallory's, which root looks through for a name, hold the kernel's lock on their own mappings."""
    count = 4 if is_quick else 20
    node = fuse_server.device()
    with Service() as place, Hellos(place) as hellos:
        holders = start_silent_holders(node, count)
        figures = starts_beside_holders(place, count, hellos)
    return [*figures, *doctors_look(holders[0])]


def end_of(recorder):
    """The figure of root's recording of programs that hang."""
    begin = time.monotonic()
    recorder.process.send_signal(signal.SIGINT)
    comes_true(recorder.has_ended, patience(ENDED_LIMIT_S))
    return Figure("root's recording of them ends", time.monotonic() - begin, "s", ENDED_LIMIT_S,
                  seen_up_to=patience(ENDED_LIMIT_S))


def beside_recorded_holders(count, *options):
    """Figures of others while root records holders by name, and of the end of that recording; what that says."""
    node = fuse_server.device()
    with Service() as place:
        recorder = Recorder(place, ROOT, "-n", NAME_OF_HOLDERS, "--no-startup", *options)
        with Hellos(place) as hellos:
            Holders(place, node, count)
            figures = starts_beside_holders(place, 2 * count or 1, hellos)
        return [*figures, end_of(recorder)], recorder.text()


@attack("recorded-holders", "", 90)
def recorded_holders(is_quick):
    """The same of programs that root records by name: they say Hello after or before."""
    return beside_recorded_holders(1 if is_quick else 10)[0]


def show_idle_pages():
    """As on a kernel that tracks them, to who looks at some: none is ever touched."""
    if not os.path.exists("/proc/kpageflags"):
        raise Impossible("the kernel has no /proc/kpageflags")
    try:
        isolation.mount("attack", "/sys/kernel/mm", "tmpfs")
    except OSError as error:
        raise Impossible(f"no /sys of its own: {error}") from error
    os.mkdir("/sys/kernel/mm/page_idle")
    with open("/sys/kernel/mm/page_idle/bitmap", "wb") as bitmap:
        bitmap.truncate(1 << 40)


@attack("idle-holders", "", 90)
def idle_holders(is_quick):
    """The same while root's recording looks again and again at what of their memory is idle."""
    show_idle_pages()
    figures, text = beside_recorded_holders(1 if is_quick else 10, "--idle-allocations", "-c", "100")
    is_told = "cannot track idle memory: the kernel has not opened /proc/" in text
    is_known = not any(f"idle memory: {words}" in text for words in ("not known", "0 B of live"))
    return [*figures, Figure("idle memory of them is told", 1 if is_known or not is_told else 0, "", 0)]


@attack("exec-holders", "", 90)
def exec_holders(_):
    """A program that hangs in an exec, where the kernel lets nobody look into it, says Hello."""
    return beside_recorded_holders(0)[0]


def hang_in_exec_when_told(tell, node, go_fd):
    """As an ordinary user: a process that is told of, and hangs in an exec from when something can be read."""
    writer, _ = fuse_server.mapping_trap(node, HELD_S)
    tell(fuse_server.hang_in_exec(writer, "victim", lambda: os.read(go_fd, 1)))
    signal.pause()


@attack("exec-attached", "", 90)
def exec_attached(_):
    """The same of one that root has attached to."""
    node = fuse_server.device()
    go_read, go = os.pipe()
    with Service() as place:
        try:
            pid = Child(MALLORY, lambda tell: hang_in_exec_when_told(tell, node, go_read)).next(20)
        except Refused as error:
            raise Impossible(f"an ordinary user cannot mount FUSE here: {error}") from error
        recorder = Recorder(place, ROOT, "-p", str(pid))
        with Hellos(place) as hellos:
            os.write(go, b"x")
            await_hang(pid, "syscall")
            figures = starts_beside_holders(place, 1, hellos)
        return [*figures, end_of(recorder)]


def is_attaching():
    """Whether an engine does work apart, on a thread of its own."""
    return any(len(os.listdir(f"/proc/{pid}/task")) > 1 for pid in service_processes())


@attack("attached-holders", "", 90)
def attached_holders(is_quick):
    """The same of programs that root asks to attach to, by number and by name."""
    count = 4 if is_quick else 20
    node = fuse_server.device()
    with Service() as place, Hellos(place) as hellos:
        holders = start_silent_holders(node, count)
        Recorder(place, ROOT, "-p", str(holders[0]), must_begin=False)
        comes_true(is_attaching, ATTACHING_S)
        roots = seconds_to_begin(place)
        by_name = Recorder(place, ROOT, "-n", NAME_OF_SILENT, must_begin=False)
        figures = starts_beside_holders(place, count, hellos)
        assert comes_true(by_name.has_begun, patience(START_LIMIT_S)), by_name.text()
    return [Figure("root's next recording begins while root attaches", roots, "s", SAME_USER_LIMIT_S, seen_up_to=HELD_S), *figures]
