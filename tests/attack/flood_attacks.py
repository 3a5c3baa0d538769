"""Whatever one user can send in quantity: connections, messages, descriptors, hostile and worthless records."""

import os
import random
import signal
import socket
import struct
import time

from attack_tools import (MALLORY, MEMORY_LIMIT_MIB, ROOT, Child, Figure, attack, comes_true, patience,
                          raise_descriptor_limit, start_hostile)
from hostile_requests import (CONTROL_PREPARE, CONTROL_START, MAX_CONTROL_PAYLOAD, Hellos, connect, control_message, hello_bytes,
                              receive_answer)
from service_under_attack import Recorder, Service, service_descriptors, service_memory_mib


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
        figures = hellos.figures(in_work=True)
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
        recorder = Recorder(place, ROOT, "-n", "hostile_client", "--no-startup", "--all-heaps")
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
            Recorder(place, ROOT, "-n", "another")
        except (AssertionError, TimeoutError):
            refused = 1
        held, grown = service_descriptors() - before[0], service_memory_mib() - before[1]
        return [Figure("connections", count or 0, "", floor=500),
                Figure("descriptors of the service", held, "", 1500),
                Figure("memory that it cost the service", grown, "MiB", MEMORY_LIMIT_MIB),
                Figure("recordings of root's that could not begin", refused, "", 0),
                *hellos.figures()]
