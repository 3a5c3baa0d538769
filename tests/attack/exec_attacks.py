"""The kernel asks whoever records programs by name before each exec of the machine. Attacks on who answers: he is
stopped, frozen, debugged, crashes, or is made to wait for somebody else.
"""

import os
import resource
import shutil
import signal
import subprocess
import time

import fuse_server
import isolation
from attack_tools import (ALICE, EXEC_LIMIT_S, MALLORY, ROOT, UNTIL_THE_END, Child, Figure, Impossible, Refused, attack,
                          exec_delay, folder_of, kill_if_there, start_as)
from profile_run import program
from service_run import wait_for
from service_under_attack import Guard, Recorder, Service, service_processes

NOBODY_NAME = "nobody_has_this_name"
START_LIMIT_S = 1.0
HOLD_S = 3  # so long an exec is waited for
CONTROL_GROUPS = ("/sys/fs/cgroup/unified", "/sys/fs/cgroup")
PTRACE_ATTACH, PTRACE_DETACH = 16, 17


def record_by_name(place, name=NOBODY_NAME):
    recorder = Recorder(place, ROOT, "-n", name, "-i", "1M")
    if "cannot watch" in recorder.text():
        raise Impossible("root may not watch for new processes here")
    return recorder


def delay_while_held(choose, hold, release):
    """The slowest exec of the first second in which `choose` of the service's processes are held."""
    with Service() as place, Guard():
        record_by_name(place)
        chosen = choose(service_processes())
        assert chosen, "there is nobody to hold"
        for pid in chosen:
            hold(pid)
        # One after the other, since a process may be needed only now and then.
        end = time.monotonic() + 1
        worst = 0
        while time.monotonic() < end:
            worst = max(worst, exec_delay(HOLD_S))
        for pid in chosen:
            release(pid)
        return worst


def worst_while_held(hold, release, is_quick):
    """All of the service's processes together; in the long form also each of them alone."""
    with Service() as place:
        record_by_name(place)
        count = len(service_processes())
    choices = [lambda pids: pids]
    if count > 1 and not is_quick:
        choices += [lambda pids, i=i: pids[i:i + 1] for i in range(count)]
    return [Figure("slowest exec while processes of the service are held",
                   max(delay_while_held(choice, hold, release) for choice in choices), "s", EXEC_LIMIT_S, seen_up_to=HOLD_S),
            Figure("processes of the service", count, "", floor=1)]


@attack("stop-service", "C3", 120)
def stop_service(is_quick):
    """SIGSTOP to each process of a service that records by name."""
    return worst_while_held(lambda pid: kill_if_there(pid, signal.SIGSTOP),
                            lambda pid: kill_if_there(pid, signal.SIGCONT), is_quick)


@attack("freeze-service", "C3", 120)
def freeze_service(is_quick):
    """The service's processes are frozen by their control group."""
    root = next((path for path in CONTROL_GROUPS if os.path.exists(f"{path}/cgroup.procs")), None)
    if root is None:
        raise Impossible("there is no second version of control groups here")
    group = f"{root}/heapprofd_attack"
    os.makedirs(group, exist_ok=True)

    def write(name, value):
        with open(f"{group}/{name}", "w") as file:
            file.write(str(value))

    def hold(pid):
        try:
            write("cgroup.procs", pid)
            write("cgroup.freeze", 1)
        except ProcessLookupError:
            pass

    def is_removed():
        try:
            os.rmdir(group)
        except OSError:  # until what was in it has ended
            return False
        return True
    write("cgroup.freeze", 0)  # a run that was killed may have left it
    try:
        return worst_while_held(hold, lambda pid: write("cgroup.freeze", 0), is_quick)
    finally:
        write("cgroup.freeze", 0)
        wait_for(is_removed, "the control group is empty")


def every_thread(request):
    """A debugger stops all threads of a process, or lets them go; they go, too, when the debugger ends."""
    def call(pid):
        try:
            for tid in os.listdir(f"/proc/{pid}/task"):
                isolation.ptrace(request, int(tid))
        except OSError:
            pass  # it has ended
    return call


@attack("debug-service", "C3", 120)
def debug_service(is_quick):
    """Root attaches a debugger to each process of the service."""
    return worst_while_held(every_thread(PTRACE_ATTACH), every_thread(PTRACE_DETACH), is_quick)


def seconds_of_a_core_dump():
    """Of a process that crashes in this folder, at most as long as an exec is waited for."""
    process = subprocess.Popen(["/bin/sleep", "60"])
    process.send_signal(signal.SIGSEGV)
    begin = time.monotonic()
    try:
        process.wait(HOLD_S)
    except subprocess.TimeoutExpired:
        process.kill()
    return time.monotonic() - begin


@attack("crash-service", "C3", 120)
def crash_service(_):
    """The service crashes and may dump its core, in a folder of a file system that takes its time to write it."""
    with open("/proc/sys/kernel/core_pattern") as pattern:
        if pattern.read(1) in "|/@":
            raise Impossible("cores do not go to where a process is: an attack that succeeds could stop the machine")
    resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    folder = folder_of(ROOT)
    server = fuse_server.FuseServer(fuse_server.device(), folder, b"", [fuse_server.WRITE], 2 * HOLD_S)
    os.chdir(folder)
    server.arm()
    delay = delay_while_held(lambda pids: pids, lambda pid: kill_if_there(pid, signal.SIGSEGV), lambda pid: None)
    dump_s = seconds_of_a_core_dump()
    os.chdir("/tmp")
    return [Figure("slowest exec while all its processes crash", delay, "s", EXEC_LIMIT_S, seen_up_to=dump_s)]


def fuse_attacker(node, silent, go_fd):
    """Tells that the overlay is there, then waits for `go_fd`, arms it and starts the program."""
    def run(tell):
        server, path = fuse_server.mount_overlay(node, silent)
        tell("mounted")
        os.read(go_fd, 1)
        server.arm()
        tell("armed")
        if fuse_server.OPEN in silent and os.fork() == 0:
            os.execv(path, [path])
        signal.pause()
    child = Child(MALLORY, run)
    try:
        child.next(10)
    except Refused as error:
        raise Impossible(f"an ordinary user cannot mount FUSE and overlay here: {error}") from error
    return child


def exec_behind_overlay(node):
    go_read, go = os.pipe()
    with Service() as place, Guard():
        attacker = fuse_attacker(node, [fuse_server.OPEN], go_read)
        record_by_name(place)
        os.write(go, b"x")
        assert attacker.next(10) == "armed"
        end = time.monotonic() + 1
        worst = 0
        while time.monotonic() < end:
            worst = max(worst, exec_delay(HOLD_S))
        attacker.kill()
        return worst


def start_behind_overlay(node):
    go_read, go = os.pipe()
    with Service() as place, Guard():
        attacker = fuse_attacker(node, [fuse_server.GETATTR], go_read)
        os.write(go, b"x")
        assert attacker.next(10) == "armed"
        begin = time.monotonic()
        record_by_name(place)
        delay = time.monotonic() - begin
        attacker.kill()
        return delay


@attack("overlay-fuse", "C2", 90)
def overlay_fuse(_):
    """A user's own FUSE below an overlay does not answer when the kernel opens a program there for the service."""
    node = fuse_server.device()
    return [Figure("slowest exec while a FUSE below an overlay is silent", exec_behind_overlay(node), "s", EXEC_LIMIT_S,
                   seen_up_to=HOLD_S),
            Figure("root's recording begins while that FUSE is silent", start_behind_overlay(node), "s", START_LIMIT_S,
                   seen_up_to=fuse_server.SILENT_S)]


def start_of_foo(path):
    """Seconds until alice's program has said that it is ready."""
    begin = time.monotonic()
    process = start_as(ALICE, [path], stdin=-1, stdout=-1)
    assert process.stdout.readline() == b"ready\n"
    delay = time.monotonic() - begin
    process.kill()
    process.communicate()
    return delay


def worst_of_starts(path):
    """Of six of alice's, while forty shells of mallory's start the same program again and again."""
    loop = f"while :; do {path} </dev/null >/dev/null; done"
    crowd = [start_as(MALLORY, ["/bin/sh", "-c", loop]) for _ in range(40)]
    worst = max(start_of_foo(path) for _ in range(6))
    for process in crowd:
        process.kill()
        process.wait()
    return worst


def worst_start_while_recorded(path):
    with Service() as place:
        record_by_name(place, "foo")
        return worst_of_starts(path)


@attack("start-flood", "")
def start_flood(_):
    """Forty programs at a time of another user start under the name that root records; alice's waits for her turn."""
    path = os.path.join(folder_of(ROOT), "foo")
    os.chmod(os.path.dirname(path), 0o755)
    shutil.copy(program("patient"), path)
    return [Figure("slowest of 6 starts of alice's program", worst_start_while_recorded(path), "s", START_LIMIT_S,
                   seen_up_to=UNTIL_THE_END),
            Figure("the same while nobody records", worst_of_starts(path), "s")]
