"""What an ordinary user can make the service spend: memory, descriptors, processes, disk, and the others' time."""

import mmap
import os
import random
import resource
import shutil
import signal
import socket
import stat
import struct
import subprocess
import time

from attack_tools import (ALICE, CONTROL_START, CONTROL_STARTED, HEAP_PROFILE, HELLO_LIMIT_S, HOSTILE_CLIENT, MALLORY,
                          MAX_CONTROL_PAYLOAD, PRELOAD, Child, Figure, Hellos, Recorder, Service, attack, connect,
                          control_message, effective_uid, folder_of, full_pipe, hello_bytes, least, program, programs_not_recorded, raise_descriptor_limit,
                          receive_answer, receive_welcome, send_start, service_descriptors, service_memory_mib,
                          service_processes, start_as, start_request, wait_for)

MEMORY_LIMIT_MIB = 128  # more than before
DESCRIPTOR_LIMIT = 100  # more than before


def start_hostile(uid, *arguments, **options):
    process = start_as(uid, [HOSTILE_CLIENT, *arguments], stdout=subprocess.PIPE, text=True, **options)
    assert process.stdout.readline() == "ready\n", f"hostile_client {arguments[0]} has failed"
    return process


def hello_delay_during(start_attack, seconds):
    """Alice's slowest Hello while an attack goes on: start_attack(place) gives a process to be killed."""
    with Service() as place, Hellos(place) as hellos:
        attacker = start_attack(place)
        time.sleep(seconds)
        worst = hellos.worst()
        attacker.kill()
        attacker.wait()
        return worst


@attack("cmdline-bomb", "H1")
def cmdline_bomb(is_quick):
    """A process with 65,000 empty arguments says Hello again and again."""
    count = 300 if is_quick else 600
    with Service() as place:
        recorder = Recorder(place, MALLORY, "-n", "hostile_client", "--no-startup")
        before = service_memory_mib()
        process = start_hostile(MALLORY, "hello", place.socket, str(count), *[""] * 65000)
        output, _ = process.communicate(timeout=40)
        grown = service_memory_mib() - before
        assert int(output) > 0, recorder.text()
        return [Figure(f"memory that {count} Hellos cost the service", grown, "MiB", MEMORY_LIMIT_MIB),
                Figure("Hellos that were accepted", int(output), "")]


@attack("slow-maps", "H2")
def slow_maps(is_quick):
    """A process with 64,000 mappings sends samples of addresses that are in none of them."""
    def start(place):
        Recorder(place, MALLORY, "-n", "hostile_client", "--no-startup")
        return start_hostile(MALLORY, "slow-maps", place.socket)
    seconds = 2 if is_quick else 8
    return [Figure("alice's slowest Hello meanwhile",
                   least(lambda: hello_delay_during(start, seconds), HELLO_LIMIT_S, 2), "s", HELLO_LIMIT_S)]


def traced_threads(pid):
    count = 0
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/status") as status:
            count += any(line.startswith("TracerPid:") and line.split()[1] != "0" for line in status)
    return count


@attack("vforkers", "H3", 90)
def vforkers(is_quick):
    """A user asks to attach to a process of his whose 100 threads wait in vfork."""
    seconds = 2 if is_quick else 8

    def start(place):
        process = start_hostile(MALLORY, "vforkers", "100")
        Recorder(place, MALLORY, "-p", str(process.pid), must_begin=False)
        return process

    worst = least(lambda: hello_delay_during(start, seconds), HELLO_LIMIT_S, 2)
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
    return [Figure("alice's slowest Hello meanwhile", worst, "s", HELLO_LIMIT_S),
            Figure(f"threads that are traced {seconds} s later", traced, "", 0),
            Figure("programs that SIGTERM does not end any more", survived, "", 0)]


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
        time.sleep(60)
    with Service() as place:
        Recorder(place, MALLORY, "-n", "sleep_as_root,python3", "--no-startup")
        pid, uid, regions = Child(MALLORY, lambda tell: spoof(place, tell)).next(30)
        assert uid == 0, "the program did not become root's"
        with open(f"/proc/{pid}/maps") as maps:
            known = [tuple(int(part, 16) for part in line.split()[0].split("-")) for line in maps]
        shown = [low for low, high in regions if any(start <= low < end for start, end in known)]
        return [Figure("mappings of root's process that mallory was shown", len(shown), "", 0)]


def abandon_recordings(path, count, tell):
    """Starts recordings whose standard error takes nothing, and leaves each at once."""
    resource.setrlimit(resource.RLIMIT_NPROC, (20, 20))
    _, write_end = full_pipe()
    folder = f"/tmp/trace_{os.getpid()}"
    os.mkdir(folder)
    started = 0
    for i in range(count):
        trace = os.open(f"{folder}/{i}", os.O_RDWR | os.O_CREAT, 0o600)
        with connect(path) as connection:
            send_start(connection, start_request(["nobody"], directory=f"{folder}/{i}.d", trace_path=f"{folder}/{i}"),
                       [trace, write_end])
            answer = receive_answer(connection)
            started += answer is not None and answer[0] == CONTROL_STARTED
        os.close(trace)
    tell(started)
    time.sleep(60)


@attack("finishers", "H5", 90)
def finishers(is_quick):
    """Recordings whose owner does not read what is printed at their end."""
    count = 40 if is_quick else 200
    with Service() as place, Hellos(place) as hellos:
        before = len(service_processes())
        child = Child(MALLORY, lambda tell: abandon_recordings(place.socket, count, tell))
        started = child.next(40)
        time.sleep(2)
        left = len(service_processes()) - before
        worst = hellos.worst()
        begin = time.monotonic()
        place.service.terminate()
        try:
            place.service.wait(12)
        except subprocess.TimeoutExpired:
            pass
        return [Figure(f"processes left by {count} recordings", left, "", 16),
                Figure("recordings that were started", started or 0, ""),
                Figure("alice's slowest Hello meanwhile", worst, "s", HELLO_LIMIT_S),
                Figure("end of the service after SIGTERM (looked at for 12 s)", time.monotonic() - begin, "s", 8)]


def say_hello_often(path, count, tell):
    wanted = 0
    for _ in range(count):
        with connect(path) as connection:
            connection.send(hello_bytes())
            fds = receive_welcome(connection)
            wanted += bool(fds)
            for fd in fds:
                os.close(fd)
    tell(wanted)
    time.sleep(60)


@attack("descriptors", "H6", 120)
def descriptors(is_quick):
    """One process says Hello thousands of times; and an honest recording of many short programs."""
    count = 2000 if is_quick else 12000
    with Service() as place:
        Recorder(place, MALLORY, "-n", "python3", "--no-startup")
        before = service_descriptors()
        child = Child(MALLORY, lambda tell: say_hello_often(place.socket, count, tell))
        wanted = child.next(70)
        held = service_descriptors() - before
    programs, limit = (300, 200) if is_quick else (1000, 1024)
    result = subprocess.run(
        ["sh", "-c", f"ulimit -n {limit}; exec {HEAP_PROFILE} -o {folder_of(0)}/out -- sh -c "
         f"'i=0; while [ $i -lt {programs} ]; do /bin/true; i=$((i+1)); done'"],
        capture_output=True, text=True, timeout=100, check=False)
    return [Figure(f"descriptors that {count} Hellos cost the service", held, "", DESCRIPTOR_LIMIT),
            Figure("Hellos that were accepted", wanted or 0, ""),
            Figure(f"of {programs} honest programs not recorded with {limit} descriptors",
                   programs_not_recorded(result.stderr), "", 0)]


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
        child = Child(MALLORY, lambda tell: abandon_recordings(place.socket, 3, tell))
        child.next(30)
        worst = looked_at = 0
        end = time.monotonic() + 2
        while time.monotonic() < end:
            for pid in service_processes():
                try:
                    if effective_uid(pid) == MALLORY:
                        looked_at += 1
                        worst = max(worst, sightings(pid, inodes, files))
                except (OSError, KeyError):
                    pass  # it has just ended
        return [Figure("descriptors and mappings of alice's in a process of mallory's", worst, "", 0),
                Figure("looks at processes of mallory's", looked_at, "")]


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
                socket.send_fds(connection, [piece], [null] * dice.choice([0, 0, 1, 59]))
        except OSError:
            pass  # no room
        count += 1
        open_ones.append(connection)
        if len(open_ones) > 200:
            open_ones.pop(dice.randrange(200)).close()
    tell(count)


@attack("hello-flood", "")
def hello_flood(is_quick):
    """Connections that talk nonsense, as fast as one process can make them."""
    seconds = 2 if is_quick else 15
    counts = []

    def flood():
        with Service() as place:
            before = (service_descriptors(), service_memory_mib())
            hellos = Hellos(place)
            child = Child(MALLORY, lambda tell: garbage(place.socket, seconds, tell))
            counts.append(child.next(seconds + 30))
            worst = hellos.worst()
            child.kill()
            end = time.monotonic() + 10  # silent ones are closed after 4 s
            while service_descriptors() > before[0] and time.monotonic() < end:
                time.sleep(0.1)
            counts.append((service_descriptors() - before[0], service_memory_mib() - before[1], place.is_alive()))
            return worst
    worst = least(flood, HELLO_LIMIT_S, 2)
    descriptors_left, memory, is_alive = counts[-1]
    return [Figure("alice's slowest Hello meanwhile", worst, "s", HELLO_LIMIT_S),
            Figure("connections", counts[-2] or 0, ""),
            Figure("descriptors held 10 s later", descriptors_left, "", 30),
            Figure("memory that it cost the service", memory, "MiB", MEMORY_LIMIT_MIB),
            Figure("services that died", int(not is_alive), "", 0)]


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
        worst = hellos.worst()
        broken = recorder.has_ended() + (not place.is_alive())
        recorder.process.send_signal(signal.SIGINT)
        recorder.process.wait(30)
        text = recorder.text()
        return [Figure("services or recordings that died", broken, "", 0),
                Figure("hostile sessions", int(output), ""),
                Figure("memory that they cost the service", grown, "MiB", 2 * MEMORY_LIMIT_MIB),
                Figure("alice's slowest Hello meanwhile", worst, "s", HELLO_LIMIT_S),
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


@attack("disk-flood", "M3", 120)
def disk_flood(is_quick):
    """A program's records fill the disk: with whose rights, by which quota?"""
    seconds = 5 if is_quick else 40
    with Service() as place, Hellos(place) as hellos:
        recorder = Recorder(place, MALLORY, "-n", "hostile_client", "--no-startup", "-c", "500")
        trace = os.path.join(recorder.output, "raw-trace")
        process = start_hostile(MALLORY, "flood", place.socket, str(seconds))
        most = most_memory = 0
        end = time.monotonic() + seconds + 20
        while process.poll() is None or (os.stat(trace).st_size == 0 and time.monotonic() < end):
            most = max(most, bytes_of_root())
            most_memory = max(most_memory, service_memory_mib())
            time.sleep(0.2)
        worst = hellos.worst()
        size = os.stat(trace).st_size
        return [Figure("written by root's processes for mallory", most / 2**20, "MiB", 1),
                Figure(f"her trace after {seconds} s", size / 2**20, "MiB"),
                Figure("memory of the service", most_memory, "MiB"),
                Figure("alice's slowest Hello meanwhile", worst, "s", HELLO_LIMIT_S)]


def half_requests(path, count, tell):
    """Control connections that never end their request, each with as many descriptors as the kernel takes."""
    raise_descriptor_limit()
    null = os.open("/dev/null", os.O_RDWR)
    message = control_message(CONTROL_START, b"x" * MAX_CONTROL_PAYLOAD)
    connections = []
    for _ in range(count):
        try:
            connection = connect(path)
            connection.setblocking(False)
            connections.append(connection)
            socket.send_fds(connection, [message[:50_000]], [null] * 59)
            for part in range(1, 10):
                socket.send_fds(connection, [message[part * 50_000:(part + 1) * 50_000]], [null] * 59)
        except OSError:
            pass  # full, or sent away
    tell(len(connections))
    time.sleep(60)


@attack("control-flood", "")
def control_flood(_):
    """A thousand control connections whose requests are never complete, with 59 descriptors a message."""
    with Service() as place, Hellos(place) as hellos:
        before = (service_descriptors(), service_memory_mib())
        child = Child(MALLORY, lambda tell: half_requests(place.socket, 1000, tell))
        count = child.next(30)
        time.sleep(1)
        held, grown = service_descriptors() - before[0], service_memory_mib() - before[1]
        refused = 0
        try:
            Recorder(place, ALICE, "-n", "another")
        except (AssertionError, TimeoutError):
            refused = 1
        return [Figure("connections", count or 0, ""),
                Figure("descriptors of the service", held, "", 2500),
                Figure("memory that it cost the service", grown, "MiB", MEMORY_LIMIT_MIB),
                Figure("recordings of alice's that could not begin", refused, "", 0),
                Figure("alice's slowest Hello meanwhile", hellos.worst(), "s", HELLO_LIMIT_S)]


