"""What a user gets to see of others: of processes that he may not look into, and of their profiles."""

import mmap
import os
import shutil
import signal
import socket
import struct
import time

from attack_tools import ALICE, MALLORY, Child, Figure, attack, folder_of, start_as
from hostile_requests import abandon_recordings, connect, hello_bytes, receive_welcome
from profile_run import program
from service_run import wait_for
from service_under_attack import PRELOAD, Recorder, Service, effective_uid, service_processes


def become_setuid_with_connection(path, program_path, carrier):
    """Connects, hands the connection to its parent, and becomes a program of root."""
    with connect(path) as connection:
        socket.send_fds(carrier, [b"x"], [connection.fileno()])
    os.execv(program_path, [program_path, "60"])


def regions_of_engine_block(fd):
    """StackRegions of src/wire/shared_memory.h: (low, high)."""
    with mmap.mmap(fd, 1 << 16, prot=mmap.PROT_READ) as block:
        count = min(struct.unpack_from("<I", block, 4096 + 4)[0], 1024)
        return [struct.unpack_from("<QQ", block, 4096 + 8 + 16 * i) for i in range(count)]


@attack("pid-spoof", "H4")
def pid_spoof(_):
    """The process that connected becomes a setuid program; its parent says Hello on the connection."""
    folder = folder_of(0)
    os.chmod(folder, 0o755)
    path = os.path.join(folder, "sleep_as_root")
    shutil.copy("/bin/sleep", path)
    os.chmod(path, 0o4755)

    def spoof(place, tell):
        ours, childs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            become_setuid_with_connection(place.socket, path, childs)
        _, fds, _, _ = socket.recv_fds(ours, 1, 1)
        end = time.monotonic() + 10
        while effective_uid(pid) != 0 and time.monotonic() < end:
            pass
        connection = socket.socket(fileno=fds[0])
        connection.send(hello_bytes())
        connection.settimeout(10)
        received = receive_welcome(connection)
        tell([pid, effective_uid(pid), regions_of_engine_block(received[0]) if received else []])
        signal.pause()
    def be_honest(place, tell):
        with connect(place.socket) as connection:
            connection.send(hello_bytes())
            received = receive_welcome(connection)
            tell(len(regions_of_engine_block(received[0]) if received else []))
    with Service() as place:
        Recorder(place, MALLORY, "-n", "sleep_as_root,python3", "--no-startup")
        honest = Child(MALLORY, lambda tell: be_honest(place, tell)).next(30)
        pid, uid, regions = Child(MALLORY, lambda tell: spoof(place, tell)).next(30)
        assert uid == 0, "the program did not become root's"
        with open(f"/proc/{pid}/maps") as maps:
            known = [tuple(int(part, 16) for part in line.split()[0].split("-")) for line in maps]
        shown = [low for low, high in regions if any(start <= low < end for start, end in known)]
        return [Figure("mappings of her own that an honest process is shown", honest or 0, "", floor=1),
                Figure("mappings of root's process that mallory was shown", len(shown), "", 0)]


def private_inodes(pid):
    """Of the memory files that a recorded process shares with its engine."""
    inodes = set()
    with open(f"/proc/{pid}/maps") as maps:
        for line in maps:
            if "memfd:heapprofd" in line:
                inodes.add(int(line.split()[4]))
    return inodes


def sightings(pid, inodes, files):
    """Descriptors and mappings of a process that lead to these memory files, or to these files (device, inode)."""
    seen = 0
    for name in os.listdir(f"/proc/{pid}/fd"):
        status = os.stat(f"/proc/{pid}/fd/{name}")
        seen += status.st_ino in inodes or (status.st_dev, status.st_ino) in files
    with open(f"/proc/{pid}/maps") as maps:
        seen += sum(int(line.split()[4]) in inodes for line in maps)
    return seen


@attack("other-users-data", "M1")
def other_users_data(_):
    """What of alice's do those processes of the service hold that run with mallory's rights?"""
    with Service() as place:
        alices = Recorder(place, ALICE, "-n", "patient", "-i", "1")
        patient = start_as(ALICE, [program("patient")], stdin=-1, stdout=-1,
                           env={"LD_PRELOAD": PRELOAD, "HEAPPROFD_DIRECTORY": place.directory})
        patient.stdout.readline()
        patient.stdin.write(b"a")
        patient.stdin.flush()
        patient.stdout.readline()
        inodes = wait_for(lambda: private_inodes(patient.pid), "alice's program is recorded")
        trace = os.stat(os.path.join(alices.output, "raw-trace"))
        files = {(trace.st_dev, trace.st_ino)}
        child = Child(MALLORY, lambda tell: abandon_recordings(place.socket, 3, 30, tell))
        assert child.next(40) == 3, "mallory's recordings have not begun"
        worst = looked_at = 0
        end = time.monotonic() + 2
        while time.monotonic() < end:
            for pid in service_processes():
                try:
                    if effective_uid(pid) == MALLORY:
                        worst = max(worst, sightings(pid, inodes, files))
                        looked_at += 1
                except (OSError, KeyError):
                    pass  # it has just ended
        return [Figure("descriptors and mappings of alice's in a process of mallory's", worst, "", 0),
                Figure("looks at processes of mallory's", looked_at, "", floor=1)]
