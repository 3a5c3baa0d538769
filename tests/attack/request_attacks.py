"""What a user can make the service spend by few requests: memory, descriptors, processes, the others' time."""

import os
import signal
import socket
import struct
import subprocess
import tempfile
import time

import fuse_server
from attack_tools import (DESCRIPTOR_LIMIT, MALLORY, MEMORY_LIMIT_MIB, ROOT, Child, Figure, Impossible, attack,
                          folder_of, start_hostile)
from hostile_requests import (CONTROL_PREPARE, CONTROL_START, OF_NEW_PYTHONS, Hellos, connect, control_message, hello_bytes,
                              new_hello_bytes, receive_welcome)
from profile_run import HEAP_PROFILE
from service_under_attack import Recorder, Service, programs_not_recorded, service_descriptors, service_memory_mib


def hellos_during(start_attack, seconds):
    """Figures of alice's Hellos while an attack goes on: start_attack(place) gives a process to be killed."""
    with Service() as place, Hellos(place) as hellos:
        attacker = start_attack(place)
        time.sleep(seconds)
        figures = hellos.figures()
        attacker.kill()
        attacker.wait()
        return figures


@attack("cmdline-bomb", "H1")
def cmdline_bomb(is_quick):
    """A process with 65,000 empty arguments says Hello again and again."""
    count = 300 if is_quick else 600
    with Service() as place:
        recorder = Recorder(place, ROOT, "-n", "hostile_client", "--no-startup")
        before = service_memory_mib()
        process = start_hostile(MALLORY, "hello", place.socket, str(count), *[""] * 65000)
        output, _ = process.communicate(timeout=40)
        grown = service_memory_mib() - before
        assert int(output) > 0, recorder.text()
        return [Figure(f"memory that {count} Hellos cost the service", grown, "MiB", MEMORY_LIMIT_MIB),
                Figure("Hellos that were accepted", int(output), "", floor=1)]


@attack("slow-maps", "H2")
def slow_maps(is_quick):
    """A process with 64,000 mappings sends samples of addresses that are in none of them."""
    def start(place):
        Recorder(place, ROOT, "-n", "hostile_client", "--no-startup")
        return start_hostile(MALLORY, "slow-maps", place.socket)
    return hellos_during(start, 2 if is_quick else 8)


def traced_threads(pid):
    count = 0
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/status") as status:
            count += any(line.startswith("TracerPid:") and line.split()[1] != "0" for line in status)
    return count


@attack("vforkers", "H3", 90)
def vforkers(is_quick):
    """Root attaches to a process of mallory's whose 100 threads wait in vfork."""
    seconds = 2 if is_quick else 8

    def start(place):
        process = start_hostile(MALLORY, "vforkers", "100")
        Recorder(place, ROOT, "-p", str(process.pid), must_begin=False)
        return process

    figures = hellos_during(start, seconds)
    with Service() as place:
        process = start(place)
        time.sleep(seconds)
        traced = traced_threads(process.pid)
        process.terminate()
        try:
            process.wait(timeout=2)
            survived = 0
        except subprocess.TimeoutExpired:
            survived = 1
        process.kill()
    return [*figures,
            Figure(f"threads that are traced {seconds} s later", traced, "", 0),
            Figure("programs that SIGTERM does not end any more", survived, "", 0)]


def poisoner(node, silent_s):
    """A function that gives sockets: whoever closes one last waits until this user's FUSE has taken what was written."""
    fuse_server.enter_user_namespace()
    mount_point = tempfile.mkdtemp()
    server = fuse_server.FuseServer(node, mount_point, b"x" * 4096, [fuse_server.WRITE], silent_s, writes_later=True)
    path = f"{mount_point}/{fuse_server.NAME}"
    writer = os.open(path, os.O_RDWR)

    def poisoned():
        ours, theirs = socket.socketpair()
        clean = os.open(path, os.O_RDWR)
        socket.send_fds(ours, [b"x"], [clean])
        os.close(clean)  # to close a file that has something to write would make this process wait
        ours.close()
        return theirs

    def spoil():
        server.arm()
        os.write(writer, b"dirty")
    return poisoned, spoil


def send_poison(path, node, silent_s, tell):
    """In whatever a connection can begin with; each is closed at once."""
    try:
        poisoned, spoil = poisoner(node, silent_s)
    except OSError as error:
        tell(f"an ordinary user cannot mount FUSE here: {error}")
        return
    tell("mounted")
    words = 5 * [b"garbage!", b"hal", hello_bytes(), hello_bytes()[:12], control_message(CONTROL_START, b"nonsense"),
                 control_message(CONTROL_PREPARE, b""), control_message(99, b"")]
    silent = [connect(path) for _ in range(300)]  # to be looked through before the next one is served
    attempts = []
    for word in words:
        poison = poisoned().detach()
        attempts.append((connect(path), [word], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", poison))], poison))
    spoil()
    taken = 0
    for connection, parts, descriptors, poison in attempts:
        try:
            connection.sendmsg(parts, descriptors)
            os.close(poison)  # at once: the last one to do so waits
            taken += 1
        except OSError:  # the kernel refuses it; at its end this process will wait
            pass
    for connection, *_ in attempts:
        connection.close()
    tell(taken)
    signal.pause()
    del silent


@attack("poisoned-sockets", "", 90)
def poisoned_sockets(_):
    """Connections that bring what its last holder closes only when the sender's file system pleases."""
    node = fuse_server.device()
    silent_s = 4
    with Service() as place, Hellos(place) as hellos:
        child = Child(MALLORY, lambda tell: send_poison(place.socket, node, silent_s, tell))
        answer = child.next(10)
        if answer != "mounted":
            raise Impossible(answer)
        taken = child.next(10)
        assert taken is not None, "nothing was sent"
        time.sleep(silent_s / 2)
        figures = hellos.figures()
        time.sleep(silent_s / 2)  # nobody is left waiting in the kernel
    return [*figures, Figure("sockets that the kernel did not refuse", taken, "")]


def say_hello_often(path, count, limit_s, tell):
    wanted = 0
    end = time.monotonic() + limit_s
    for _ in range(count):
        if time.monotonic() > end:  # a busy machine
            break
        with connect(path) as connection:
            connection.send(new_hello_bytes())
            fds = receive_welcome(connection)
            wanted += bool(fds)
            for fd in fds:
                os.close(fd)
    tell(wanted)
    signal.pause()


@attack("descriptors", "H6", 120)
def descriptors(is_quick):
    """One process says Hello thousands of times; and an honest recording of many short programs."""
    count = 2000 if is_quick else 12000
    with Service() as place:
        Recorder(place, ROOT, *OF_NEW_PYTHONS)
        before = service_descriptors()
        child = Child(MALLORY, lambda tell: say_hello_often(place.socket, count, 40, tell))
        wanted = child.next(70)
        held = service_descriptors() - before
    programs, limit = (300, 200) if is_quick else (1000, 1024)
    result = subprocess.run(
        ["sh", "-c", f"ulimit -n {limit}; exec {HEAP_PROFILE} -o {folder_of(0)}/out -- sh -c "
         f"'i=0; while [ $i -lt {programs} ]; do /bin/true; i=$((i+1)); done'"],
        capture_output=True, text=True, timeout=100, check=False)
    return [Figure(f"descriptors that up to {count} Hellos cost the service", held, "", DESCRIPTOR_LIMIT),
            Figure("Hellos that were accepted", wanted or 0, "", floor=count // 10),
            Figure(f"of {programs} honest programs not recorded with {limit} descriptors",
                   programs_not_recorded(result.stderr), "", 0)]
