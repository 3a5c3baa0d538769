"""What goes over the service's socket, said by hand: Hellos of programs and requests of commands (src/wire)."""

import array
import os
import resource
import select
import signal
import socket
import struct
import time

import config_pb2
import control_pb2
import handshake
from attack_tools import ALICE, HELLO_LIMIT_S, Child, Figure, patience
from service_run import full_pipe
from service_under_attack import Recorder

CONTROL_MAGIC, CONTROL_START, CONTROL_PREPARE = 0x3130746370616568, 2, 4  # src/wire/control.h
CONTROL_STARTED, CONTROL_NOTE, CONTROL_DONE, CONTROL_READY = 18, 20, 16, 23
MAX_CONTROL_PAYLOAD = 1 << 20


def connect(path):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    return connection


def hello_bytes():
    return handshake.hello(handshake.DORMANT)


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


class Hellos:
    """Alice's programs report all the while, one after the other; how long did the slowest wait for its answer? She has
    a recording, so that an answer is work."""

    def __init__(self, place):
        self._recorder = Recorder(place, ALICE, "-n", "python3", "--no-startup")
        self._begin = time.monotonic()
        self._stop, stop_fd = os.pipe()
        self._child = Child(ALICE, lambda tell: self._say(place.socket, self._stop, tell))
        self._stop_fd = stop_fd

    @staticmethod
    def _say(path, stop, tell):
        worst = count = wanted = 0
        while not select.select([stop], [], [], 0.02)[0]:
            begin = time.monotonic()
            with connect(path) as connection:
                connection.send(hello_bytes())
                select.select([connection, stop], [], [])
                worst = max(worst, time.monotonic() - begin)
                count += 1
                if select.select([connection], [], [], 0)[0]:
                    fds = receive_welcome(connection)
                    wanted += 1 if fds else 0
                    for fd in fds:
                        os.close(fd)
        tell({"worst": worst, "count": count, "wanted": wanted})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._child.kill()

    def figures(self):
        """Ends them and their recording. An answer that has not come counts as long as it was waited for; to decline is
        to answer, too, but not to serve."""
        # Long enough for one that is too slow to be seen.
        time.sleep(max(0, self._begin + patience(HELLO_LIMIT_S) - time.monotonic()))
        seconds = time.monotonic() - self._begin
        os.write(self._stop_fd, b"x")
        answer = self._child.next(10)
        self._recorder.process.send_signal(signal.SIGINT)
        assert answer and answer["count"] > 1, f"alice's programs have not reported: {answer}"
        declined = answer["count"] - answer["wanted"] - 1  # the last one may not have been answered yet
        return [Figure("alice's slowest Hello meanwhile", answer["worst"], "s", HELLO_LIMIT_S, seen_up_to=seconds),
                *([Figure("alice's programs that were declined", declined, "", 0)] if declined > 0 else [])]


def start_request(names, **fields):
    """A StartRequest for programs of these names."""
    config = config_pb2.TraceConfig()
    source = config.data_sources.add().config
    source.name = "android.heapprofd"
    source.heapprofd_config.sampling_interval_bytes = 4096
    source.heapprofd_config.process_cmdline.extend(names)
    return control_pb2.StartRequest(trace_config=config.SerializeToString(), **fields).SerializeToString()


def control_message(kind, payload):
    return struct.pack("<QII", CONTROL_MAGIC, kind, len(payload)) + payload


def send_start(connection, payload, fds):
    """As soon as the service takes descriptors."""
    connection.send(control_message(CONTROL_PREPARE, b""))
    answer = receive_answer(connection)
    assert answer and answer[0] == CONTROL_READY, f"the service is not ready: {answer}"
    socket.send_fds(connection, [control_message(CONTROL_START, payload)], fds)


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


AT_ONCE = 20  # recordings that are begun together


def start_deaf_recording(path, trace_path, write_end):
    """A connection whose recording may print to what takes nothing."""
    trace = os.open(trace_path, os.O_RDWR | os.O_CREAT, 0o600)
    connection = connect(path)
    directory = os.open(os.path.dirname(trace_path), os.O_PATH)
    send_start(connection, start_request(["nobody"], directory=f"{trace_path}.d", trace_path=trace_path),
               [trace, write_end, directory])
    os.close(trace)
    os.close(directory)
    return connection


def abandon_recordings(path, count, seconds, tell):
    """Starts so many recordings whose standard error takes nothing, or as many as it can in this time, and leaves them
    as soon as they have begun. Tells how many have."""
    resource.setrlimit(resource.RLIMIT_NPROC, (20, 20))
    _, write_end = full_pipe()
    folder = f"/tmp/trace_{os.getpid()}"
    os.mkdir(folder)
    started = asked = 0
    end = time.monotonic() + seconds
    while asked < count and time.monotonic() < end:
        serials = range(asked, min(asked + AT_ONCE, count))
        connections = [start_deaf_recording(path, f"{folder}/{serial}", write_end) for serial in serials]
        for connection in connections:
            answer = receive_answer(connection)
            started += answer is not None and answer[0] == CONTROL_STARTED
        for connection in connections:
            connection.close()
        asked += len(serials)
    tell(started)
    signal.pause()
