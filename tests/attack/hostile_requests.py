"""What goes over the service's socket, said by hand: Hellos of programs and requests of commands (src/wire)."""

import array
import os
import select
import signal
import socket
import struct
import time

import handshake
from attack_tools import ALICE, HELLO_LIMIT_S, ROOT, Child, Figure, patience
from service_under_attack import Recorder

CONTROL_MAGIC, CONTROL_START, CONTROL_PREPARE = 0x3130746370616568, 2, 4  # src/wire/control.h
CONTROL_STARTED, CONTROL_NOTE, CONTROL_DONE, CONTROL_READY = 18, 20, 16, 23
MAX_CONTROL_PAYLOAD = 1 << 20


def connect(path):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    return connection


def hello_bytes(origin=handshake.DORMANT):
    return handshake.hello(origin)


# A recording of root's of whatever says Hello of python3: nothing that runs is attached to, and those that have just been
# started are wanted.
OF_NEW_PYTHONS = ("-n", "python3", "--no-running")


def new_hello_bytes():
    return hello_bytes(handshake.STARTUP)


def receive_welcome(connection):
    """Descriptors that came with it; none: declined."""
    data, ancillary, _, _ = connection.recvmsg(handshake.WELCOME_SIZE, 1024)
    while len(data) == handshake.WELCOME_SIZE and handshake.status_of(data) == handshake.WAIT:
        data, ancillary, _, _ = connection.recvmsg(handshake.WELCOME_SIZE, 1024)
    fds = array.array("i")
    for level, kind, content in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(content[:len(content) // 4 * 4])
    return list(fds) if data else []


WORK_LIMIT_S = 0.1


def work_of(pid):
    """Processor time of a process's first thread, s."""
    with open(f"/proc/{pid}/schedstat") as text:
        return int(text.read().split()[0]) / 1e9


class Hellos:
    """Alice's programs report all the while, one after the other; how long did the slowest wait for its answer? Root
    records them, so that an answer is work."""

    def __init__(self, place):
        self._service = place.service.pid
        self._recorder = Recorder(place, ROOT, *OF_NEW_PYTHONS)
        self._begin = time.monotonic()
        self._stop, stop_fd = os.pipe()
        self._child = Child(ALICE, lambda tell: self._say(place.socket, self._service, self._stop, tell))
        self._stop_fd = stop_fd

    @staticmethod
    def _say(path, service, stop, tell):
        worst = most_work = count = wanted = 0
        while not select.select([stop], [], [], 0.02)[0]:
            begin = time.monotonic()
            work = work_of(service)
            with connect(path) as connection:
                connection.send(new_hello_bytes())
                select.select([connection, stop], [], [])
                worst = max(worst, time.monotonic() - begin)
                most_work = max(most_work, work_of(service) - work)
                count += 1
                if select.select([connection], [], [], 0)[0]:
                    fds = receive_welcome(connection)
                    wanted += 1 if fds else 0
                    for fd in fds:
                        os.close(fd)
        tell({"worst": worst, "work": most_work, "count": count, "wanted": wanted})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._child.kill()

    def figures(self, in_work=False):
        """`in_work`: the limit is of the service's processor time while a Hello waits, which others on the machine do not
        change. Ends them and their recording. An answer that has not come counts as long as it was waited for; to decline is
        to answer, too, but not to serve."""
        # Long enough for one that is too slow to be seen.
        time.sleep(max(0, self._begin + patience(HELLO_LIMIT_S) - time.monotonic()))
        seconds = time.monotonic() - self._begin
        os.write(self._stop_fd, b"x")
        answer = self._child.next(10)
        self._recorder.process.send_signal(signal.SIGINT)
        assert answer and answer["count"] > 1, f"alice's programs have not reported: {answer}"
        declined = answer["count"] - answer["wanted"] - 1  # the last one may not have been answered yet
        limits = {} if in_work else {"limit": HELLO_LIMIT_S, "seen_up_to": seconds}
        return [Figure("alice's slowest Hello meanwhile", answer["worst"], "s", **limits),
                *([Figure("the most work of the service before an answer", answer["work"], "CPU s", WORK_LIMIT_S)]
                  if in_work else []),
                *([Figure("alice's programs that were declined", declined, "", 0)] if declined > 0 else [])]


def control_message(kind, payload):
    return struct.pack("<QII", CONTROL_MAGIC, kind, len(payload)) + payload


def receive_answer(connection, timeout_s=10):
    """(kind, payload) of the first answer that is no note; None: there is none."""
    connection.settimeout(timeout_s)
    try:
        while True:
            header = connection.recv(16, socket.MSG_WAITALL)
            if len(header) < 16:
                return None
            _, kind, size = struct.unpack("<QII", header)
            payload = connection.recv(size, socket.MSG_WAITALL) if size else b""
            if kind != CONTROL_NOTE:
                return kind, payload
    except OSError:
        return None
