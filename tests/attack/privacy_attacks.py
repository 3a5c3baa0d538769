"""What a user gets to see of processes that only others may look into."""

import mmap
import os
import shutil
import signal
import socket
import struct
import time

from attack_tools import MALLORY, ROOT, Child, Figure, attack, folder_of
from hostile_requests import connect, new_hello_bytes, receive_welcome
from service_under_attack import Recorder, Service, effective_uid


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
        connection.send(new_hello_bytes())
        connection.settimeout(10)
        received = receive_welcome(connection)
        tell([pid, effective_uid(pid), regions_of_engine_block(received[0]) if received else []])
        signal.pause()
    def be_honest(place, tell):
        with connect(place.socket) as connection:
            connection.send(new_hello_bytes())
            received = receive_welcome(connection)
            tell(len(regions_of_engine_block(received[0]) if received else []))
    with Service() as place:
        Recorder(place, ROOT, "-n", "sleep_as_root,python3", "--no-running")
        honest = Child(MALLORY, lambda tell: be_honest(place, tell)).next(30)
        pid, uid, regions = Child(MALLORY, lambda tell: spoof(place, tell)).next(30)
        assert uid == 0, "the program did not become root's"
        with open(f"/proc/{pid}/maps") as maps:
            known = [tuple(int(part, 16) for part in line.split()[0].split("-")) for line in maps]
        shown = [low for low, high in regions if any(start <= low < end for start, end in known)]
        return [Figure("mappings of her own that an honest process is shown", honest or 0, "", floor=1),
                Figure("mappings of root's process that mallory was shown", len(shown), "", 0)]
