"""What anybody can do to the threads that wait for a session at a service's wake page, which all users can map."""

import ctypes
import json
import mmap
import os
import platform
import re
import time

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.syscall.restype = ctypes.c_long
_LIBC.mmap.restype = ctypes.c_void_p
_LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
SYS_FUTEX = {"x86_64": 202}.get(platform.machine(), 98)
FUTEX_WAKE, FUTEX_REQUEUE = 1, 3
ALL = ctypes.c_void_p(0x7FFFFFFF)
GENERATION = 4  # of WakePage (wire/service_place.h)
# Before futex_waitv nobody waits there.
IS_WAITED_AT = tuple(int(part) for part in re.findall(r"\d+", os.uname().release)[:2]) >= (5, 16)


def _map(protection, flags, fd):
    address = _LIBC.mmap(None, mmap.PAGESIZE, protection, flags, fd, 0)
    assert address not in (None, ctypes.c_void_p(-1).value)
    return address


class WakePage:
    """That of the service in `directory`, mapped as its readers have it, and one that nobody else knows."""

    def __init__(self, directory):
        fd = os.open(os.path.join(directory, "wake"), os.O_RDONLY)
        self._word = ctypes.c_void_p(_map(mmap.PROT_READ, mmap.MAP_SHARED, fd) + GENERATION)
        os.close(fd)
        self._elsewhere = ctypes.c_void_p(_map(mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS, -1))

    def _futex(self, *arguments):
        count = _LIBC.syscall(SYS_FUTEX, self._word, *arguments)
        if count < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return count

    def wake(self):
        """Wakes all that wait there; gives their number."""
        return self._futex(FUTEX_WAKE, ALL, None, None, 0)

    def move(self):
        """Lets them wait elsewhere, where nobody wakes them; gives their number."""
        return self._futex(FUTEX_REQUEUE, 0, ALL, self._elsewhere, 0)


def move_one(directory):
    """Until it was there to be moved."""
    page = WakePage(directory)
    while page.move() == 0:
        pass


def seconds_of_wakes(directory, count):
    """How long it takes to wake somebody so many times."""
    page = WakePage(directory)
    begin = time.monotonic()
    woken = 0
    while woken < count:
        woken += page.wake()
    return time.monotonic() - begin


def done_by(user, work, *arguments):
    """What work(*arguments) gives, in a process of this user; None: of our own."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            if user is not None:
                os.setgroups([])
                os.setresgid(user, user, user)
                os.setresuid(user, user, user)
            os.write(write_end, json.dumps(work(*arguments)).encode())
        finally:
            os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as answer:
        text = answer.read()
    os.waitpid(pid, 0)
    return json.loads(text)
