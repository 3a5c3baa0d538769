"""Whatever one user can send in quantity: connections, messages, descriptors, hostile and worthless records."""

import os
import random
import signal
import socket
import stat
import struct
import subprocess
import time

from attack_tools import (ALICE, ENGINE_LIMIT_MIB, MALLORY, MEMORY_LIMIT_MIB, ROOT, Child, Figure, Impossible, attack, comes_true,
                          folder_of, patience, raise_descriptor_limit, start_hostile)
from hostile_requests import (CONTROL_PREPARE, CONTROL_START, MAX_CONTROL_PAYLOAD, Hellos, connect, control_message, hello_bytes,
                              receive_answer)
from service_under_attack import (Recorder, Service, effective_uid, service_descriptors, service_memory_mib,
                                  service_processes)


def send_with_fds(connection, data, fds):
    """Where the kernel refuses descriptors (Linux 6.16), without."""
    try:
        socket.send_fds(connection, [data], fds)
    except PermissionError:
        connection.send(data)


def garbage(path, seconds, tell):
    """Connections that say nothing, half a message, nonsense, or bring descriptors."""
    dice = random.Random(1)
    pieces = [b"", hello_bytes()[:12], hello_bytes()[:8] + b"\xff" * 16, os.urandom(64), os.urandom(4000),
              control_message(CONTROL_START, b"")[:9], control_message(CONTROL_START, os.urandom(200)),
              control_message(99, b"x"), struct.pack("<QII", 0x3130746370616568, CONTROL_START, 0xffffffff)]
    null = os.open("/dev/null", os.O_RDWR)
    count = 0
    open_ones = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        connection = socket.socket(socket.AF_UNIX)
        connection.setblocking(False)
        try:
            connection.connect(path)
            piece = dice.choice(pieces)
            if piece:
                send_with_fds(connection, piece, [null] * dice.choice([0, 0, 1, 59]))
            count += 1
        except OSError:
            pass  # no room
        open_ones.append(connection)
        if len(open_ones) > 200:
            open_ones.pop(dice.randrange(200)).close()
    tell(count)


@attack("hello-flood", "")
def hello_flood(is_quick):
    """Connections that talk nonsense, as fast as one process can make them."""
    seconds = 2 if is_quick else 15
    with Service() as place:
        before = (service_descriptors(), service_memory_mib())
        hellos = Hellos(place)
        child = Child(MALLORY, lambda tell: garbage(place.socket, seconds, tell))
        count = child.next(seconds + 30)
        figures = hellos.figures()
        child.kill()
        comes_true(lambda: service_descriptors() <= before[0], 10)  # silent ones are closed after 4 s
        return [*figures,
                Figure("connections", count or 0, "", floor=1000),
                Figure("descriptors held 10 s later", service_descriptors() - before[0], "", 30),
                Figure("memory that it cost the service", service_memory_mib() - before[1], "MiB", MEMORY_LIMIT_MIB),
                Figure("services that died", int(not place.is_alive()), "", 0)]


# Of what a session has told, in a ring of 8 MiB; more is needed while it is read.
SESSION_LIMIT_MIB = 2
FINISH_LIMIT_S = 15


@attack("ring-rubbish", "", 120)
def ring_rubbish(is_quick):
    """Hostile records, tables and positions in the memory that a program shares with the service."""
    seconds = 3 if is_quick else 60
    with Service() as place, Hellos(place) as hellos:
        recorder = Recorder(place, MALLORY, "-n", "hostile_client", "--no-startup", "--all-heaps")
        before = service_memory_mib()
        process = start_hostile(MALLORY, "rubbish", place.socket, str(seconds))
        output, _ = process.communicate(timeout=seconds + 30)
        grown = service_memory_mib() - before
        figures = hellos.figures()
        broken = recorder.has_ended() + (not place.is_alive())
        begin = time.monotonic()
        recorder.process.send_signal(signal.SIGINT)
        comes_true(recorder.has_ended, patience(FINISH_LIMIT_S))
        finished = time.monotonic() - begin
        text = recorder.text()
        return [Figure("services or recordings that died", broken, "", 0),
                Figure("hostile sessions", int(output), "", floor=1),
                Figure("memory that they cost the service", grown, "MiB",
                       2 * MEMORY_LIMIT_MIB + SESSION_LIMIT_MIB * int(output)),
                *figures,
                Figure("until the recording is finished", finished, "s", FINISH_LIMIT_S, seen_up_to=patience(FINISH_LIMIT_S)),
                Figure("escape characters in the summary", text.count("\033"), "", 0)]


def bytes_of_root():
    """Of files on disk that root's processes of the service hold open for writing."""
    total = 0
    for pid in service_processes():
        if effective_uid(pid) != 0:
            continue
        for name in os.listdir(f"/proc/{pid}/fd"):
            try:
                status = os.stat(f"/proc/{pid}/fd/{name}")
                target = os.readlink(f"/proc/{pid}/fd/{name}")
                with open(f"/proc/{pid}/fdinfo/{name}") as info:
                    flags = int(next(line for line in info if line.startswith("flags:")).split()[1], 8)
            except OSError:
                continue
            if stat.S_ISREG(status.st_mode) and flags & os.O_ACCMODE and "memfd:" not in target:
                total += status.st_blocks * 512
    return total


DISK_MIB = 16


def mount_disk(place):
    """Half of which the file system keeps for root. Quotas need more than most kernels have; both are the engine's user's."""
    image = f"{folder_of(ROOT)}/disk"
    with open(image, "wb") as file:
        file.truncate(DISK_MIB << 20)
    try:
        subprocess.run(["mkfs.ext4", "-q", "-m", "50", "-O", "^has_journal", "-E", "lazy_itable_init=0", image], check=True)
        subprocess.run(["mount", "-o", "loop", image, place], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise Impossible(f"no disk can be made here: {error} {getattr(error, 'stderr', '')}") from error


def kept_for_root(folder):
    """MiB on the disk there that only root can still fill."""
    status = os.statvfs(folder)
    return (status.f_bfree - status.f_bavail) * status.f_frsize / 2**20


def folder_on_disk(disk, uid):
    os.mkdir(disk)
    mount_disk(disk)
    folder = os.path.join(disk, "of_user")
    os.mkdir(folder)
    os.chown(folder, uid, uid)
    return folder


@attack("disk-flood", "M3", 120)
def disk_flood(is_quick):
    """A program's records fill the disk: with whose rights, by whose room?"""
    seconds = 5 if is_quick else 20
    folder = folder_on_disk("/run/disk", MALLORY)
    reserve = kept_for_root(folder)
    with Service() as place, Hellos(place) as hellos:
        recorder = Recorder(place, MALLORY, "-n", "hostile_client", "--no-startup", "-c", "500", folder=folder)
        process = start_hostile(MALLORY, "flood", place.socket, str(seconds + 40))
        most = most_memory = 0
        is_full = False
        begin = time.monotonic()
        # A dump of so much may take its time.
        while (passed := time.monotonic() - begin) < seconds or (not is_full and passed < seconds + 40):
            most = max(most, bytes_of_root())
            most_memory = max(most_memory, service_memory_mib())
            is_full = "No space left on device" in recorder.text()
            time.sleep(0.2)
        process.kill()
        figures = hellos.figures()
        comes_true(recorder.has_ended, patience(FINISH_LIMIT_S))
        return [Figure("written by root's processes for mallory", most / 2**20, "MiB", 1),
                Figure("recordings for which the disk was too small", int(is_full), "", floor=1),
                Figure("of the room that is kept for root, taken", reserve - kept_for_root(folder), "MiB", 0),
                Figure("memory of the service", most_memory, "MiB", ENGINE_LIMIT_MIB),
                *figures]


def half_requests(path, count, tell):
    """Control connections that never end their request, each with as many descriptors as the kernel takes."""
    raise_descriptor_limit()
    null = os.open("/dev/null", os.O_RDWR)
    message = control_message(CONTROL_START, b"x" * MAX_CONTROL_PAYLOAD)
    connections = []
    for _ in range(count):
        try:
            connection = connect(path)
            connections.append(connection)
            connection.send(control_message(CONTROL_PREPARE, b""))
            receive_answer(connection)  # it takes descriptors now, or has no room
            connection.setblocking(False)
            for part in range(10):
                send_with_fds(connection, message[part * 50_000:(part + 1) * 50_000], [null] * 59)
        except OSError:
            pass  # full, or sent away
    tell(len(connections))
    signal.pause()


@attack("control-flood", "")
def control_flood(_):
    """A thousand control connections whose requests are never complete, with 59 descriptors a message."""
    with Service() as place, Hellos(place) as hellos:
        before = (service_descriptors(), service_memory_mib())
        child = Child(MALLORY, lambda tell: half_requests(place.socket, 1000, tell))
        count = child.next(30)
        refused = 0
        try:
            Recorder(place, ALICE, "-n", "another")
        except (AssertionError, TimeoutError):
            refused = 1
        held, grown = service_descriptors() - before[0], service_memory_mib() - before[1]
        return [Figure("connections", count or 0, "", floor=500),
                Figure("descriptors of the service", held, "", 1500),
                Figure("memory that it cost the service", grown, "MiB", MEMORY_LIMIT_MIB),
                Figure("recordings of alice's that could not begin", refused, "", 0),
                *hellos.figures()]
