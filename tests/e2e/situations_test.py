"""Messages that need a situation of their own: what is said is true there, and what it advises is possible."""

import os
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import unittest

import pprof_pb2
from profile_run import HEAP_PROFILE, Started, program, run
from running_process import MAY_ATTACH, Attached, Engine, Running, child_named, wait_until
from service_run import Place
from with_directory import WithDirectory

NOT_A_PID = 2 ** 22 - 1
PERFETTO = os.path.join(os.environ["COMPAT"], "perfetto")
QUERIES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "queries")
ALL_TEMPORARY_PLACES = 'for place in /tmp /var/tmp /run /dev/shm; do mount -t tmpfs -o "$0" tmpfs $place; done && exec "$@"'


def tool(*arguments, **kwargs):
    return subprocess.run([HEAP_PROFILE, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120,
                          **kwargs)


def mounts_privately():
    return subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/tmp"], capture_output=True).returncode == 0


def with_temporary_places(options, *command):
    """A command that sees other file systems, mounted with these options, where temporary files go."""
    return subprocess.run(["unshare", "-m", "/bin/sh", "-c", ALL_TEMPORARY_PLACES, options, *command], capture_output=True,
                          stdin=subprocess.DEVNULL, timeout=120)


class Situation(WithDirectory):
    def compile(self, name, source, *options):
        subprocess.run(["cc", "-x", "c", "-", "-x", "none", "-o", self.path(name), *options], input=source, text=True, check=True)
        return self.path(name)

    def trace_of(self, *names):
        """A binary trace of those of tests/queries, one behind the other."""
        text = b""
        for name in names:
            with open(os.path.join(QUERIES, name, "in.textproto"), "rb") as file:
                text += file.read()
        path = self.path("trace-of-" + "-".join(names))
        result = tool("traceconv", "binary", self.write("text", text), path)
        self.assertEqual(result.returncode, 0, result.stderr)
        return path


class Files(Situation):
    def test_a_trace_with_both_kinds_of_heaps_needs_a_choice(self):
        result = tool("traceconv", "profile", "--output-dir", self.path("out"), self.trace_of("two_traces", "heap_graph"))
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("cannot tell what to convert: ", result.stderr)
        self.assertIn("has native heaps and Java heaps; say --alloc or --java-heap", result.stderr)

    def test_a_trace_with_java_heaps_only_has_no_native_figures(self):
        result = tool("show", self.trace_of("heap_graph"))
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("it has Java heaps only; heap_profile hprof leaks, heap_profile report, heap_profile query and heap_profile traceconv java_heap_profile show them",
                      result.stderr)

    def test_of_a_damaged_trace_the_beginning_is_used(self):
        with open(self.trace_of("two_traces"), "rb") as file:
            whole = file.read()
        path = self.write("damaged", whole + b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")
        result = tool("traceconv", "profile", "--output-dir", self.path("out"), path)
        self.assertIn("traceconv: the trace is damaged behind ", result.stderr)
        self.assertIn("; what comes before is used", result.stderr)
        self.assertTrue(os.listdir(self.path("out")))
        result = tool("query", path, "SELECT count(*) FROM heap_dump")
        self.assertIn(f"{path} is incomplete: ", result.stderr)

    def test_the_end_of_a_trace_that_is_cut_is_told_once(self):
        with open(self.trace_of("estimates"), "rb") as file:
            path = self.write("cut", file.read() + b"\x0a\x05x")
        result = tool("diff", path, path)
        self.assertIn(f"! {path} is incomplete: ", result.stdout)
        self.assertNotIn(f"{path}: {path}", result.stdout)
        result = tool("traceconv", "text", self.write("one", b"\x0a\x02\x40\x01\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
                      self.path("out"))
        self.assertIn("the trace is damaged behind 1 packet: ", result.stderr)

    def test_a_pprof_profile_is_no_trace(self):
        profile = pprof_pb2.Profile(string_table=["", "space", "bytes"])
        profile.sample_type.add(type=1, unit=2)
        profile.sample.add(value=[1])
        path = self.write("profile.pb", profile.SerializeToString())
        for form in ("text", "decompress_packets"):
            result = tool("traceconv", form, path, self.path("out"))
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertIn(f"cannot read trace {path}: it is a pprof profile; go tool pprof -raw shows what is in it", result.stderr)
            self.assertFalse(os.path.exists(self.path("out")))

    def test_text_that_is_no_trace(self):
        result = tool("traceconv", "binary", self.write("text", b"packet { nonsense }"), self.path("out"))
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("cannot read trace text: ", result.stderr)

    def test_a_file_without_packets(self):
        result = tool("traceconv", "profile", self.write("trace", b"\x12\x01x"))
        self.assertIn("it holds no trace packet; give it the raw-trace that heap_profile wrote, or", result.stderr)

    def test_damaged_compression(self):
        for name, head in (("gzip", b"\x1f\x8b\x08\0\0\0\0\0\0\x03" + b"\xff" * 100), ("zstd", b"\x28\xb5\x2f\xfd" + b"\xff" * 100)):
            result = tool("query", self.write(name, head), "SELECT 1")
            self.assertNotEqual(result.returncode, 0)
            self.assertIn("cannot inflate: ", result.stderr)

    def test_more_queries_than_anybody_writes(self):
        result = tool("query", "/dev/null", "-q", self.write("q.sql", b"-" * ((16 << 20) + 1)))
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("q.sql: more than 16 MiB", result.stderr)

    @unittest.skipUnless(mounts_privately(), "nothing can be mounted here")
    def test_sorting_that_needs_room(self):
        sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000000) " \
              "SELECT sum(i) FROM (SELECT i, hex(randomblob(50)) r FROM n ORDER BY r LIMIT 1000000)"
        trace = self.trace_of("two_traces")
        kept = "/root" if os.access("/root", os.W_OK) else os.path.expanduser("~")
        with tempfile.TemporaryDirectory(dir=kept) as elsewhere:
            shutil.copy(trace, elsewhere + "/trace")
            result = with_temporary_places("size=64k", HEAP_PROFILE, "query", elsewhere + "/trace", sql)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn(b"sorting its rows needs more room for temporary files; free some, set SQLITE_TMPDIR", result.stderr)


class Programs(Situation):
    def test_a_program_whose_library_is_missing_never_reports(self):
        library = self.compile("libgone.so", "int gone(void) { return 0; }", "-shared", "-fPIC")
        gone = self.compile("lost", "int gone(void); int main(void) { return gone(); }", library)
        os.unlink(library)
        result = run([gone])
        self.assertEqual(result.exit_code, 127)
        self.assertIn("the program never reported: it ended before the profiling library was loaded, clears its environment, or",
                      result.stderr)

    def test_one_that_is_interrupted_before_its_library_is_loaded_is_not_blamed(self):
        library = self.compile("libslow.so", "int slow(void) { return 0; }", "-shared", "-fPIC")
        program_of_it = self.compile("slow", "int slow(void); int main(void) { return slow(); }", library)
        os.unlink(library)
        os.mkfifo(library)  # to open it takes as long as nobody writes
        started = Started([program_of_it])
        wait_until(lambda: child_named(started.process.pid, "slow"))
        started.process.send_signal(signal.SIGINT)
        result = started.finish()
        self.assertEqual(result.exit_code, 128 + signal.SIGINT)
        self.assertIn("it was interrupted before the program had reported; let it run for longer", result.stderr)
        self.assertNotIn("never reported", result.stderr)

    def said_at_the_end_of(self, script, line_wanted):
        """Of a program that leaves children behind, which end when nobody writes to them any more."""
        command = [HEAP_PROFILE, "-o", self.path("out"), "--", "/bin/sh", "-c", script]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            impatience = threading.Timer(60, process.kill)
            impatience.start()
            line = process.stderr.readline()
            while line and not re.search(line_wanted, line):
                line = process.stderr.readline()
            impatience.cancel()
            self.assertTrue(line)
            process.communicate(timeout=60)

    def test_a_child_that_outlives_the_program_is_waited_for(self):
        self.said_at_the_end_of(f"exec 3<&0; {program('patient')} 1 <&3 >/dev/null & exit 0",
                                "the program has ended; still recording 1 process it started, Ctrl-C stops")

    def test_children_that_outlive_the_program_are_waited_for(self):
        # Two, and parts of the shell that have only just ended.
        child = f"{program('patient')} 1 <&3 &"
        self.said_at_the_end_of(f"exec 3<&0; {{ {child} {child} }} | {{ read one; read other; }}",
                                r"the program has ended; still recording [2-4] processes it started, Ctrl-C stops")

    def test_a_heap_profile_without_its_library_says_so(self):
        alone = shutil.copy(HEAP_PROFILE, self.path("heap_profile"))
        result = subprocess.run([alone, "--", "/bin/true"], capture_output=True, text=True)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, f"cannot find .* near {self.directory}; build or install it again")

    @unittest.skipUnless(mounts_privately(), "nothing can be mounted here")
    def test_what_is_for_standard_output_waits_in_a_file(self):
        config = self.write("config", tool("--print-config", "-n", "nobody", "-d", "10").stdout.encode())
        kept = tempfile.mkdtemp(dir=os.path.expanduser("~"))
        self.addCleanup(shutil.rmtree, kept)
        shutil.copy(config, kept)
        result = with_temporary_places("ro", "env", "-u", "TMPDIR", "HEAPPROFD_DIRECTORY=" + kept, PERFETTO, "-c", kept + "/config",
                                       "-o", "-")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn(b"cannot create a file in /", result.stderr)


class Services(Situation):
    """What listens in the place of a service is none, or an old one."""

    def said_when_answered(self, answer):
        """What a recording says of a service that gives this to whoever connects."""
        with Place() as place, socket.socket(socket.AF_UNIX) as listener:
            listener.bind(os.path.join(place.directory, "socket"))
            listener.listen()

            def serve():
                while True:
                    try:
                        connection, _ = listener.accept()
                    except OSError:
                        return
                    with connection:
                        connection.recv(4096)
                        connection.sendall(answer)
                        connection.shutdown(socket.SHUT_WR)
                        while connection.recv(4096):
                            pass

            thread = threading.Thread(target=serve, daemon=True)
            thread.start()
            result = tool("-n", "nobody", "-d", "10", "-o", self.path("out"), env={**os.environ, **place.env})
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
        self.assertNotEqual(result.returncode, 0)
        return result.stderr

    def test_one_that_closes_the_connection_is_not_called_silent(self):
        self.assertIn("cannot record: the service has ended the connection; restart it, should it be of another version than this heap_profile "
                      "(the other side has closed the connection)", self.said_when_answered(b""))

    def test_one_whose_answer_is_no_message(self):
        self.assertIn("cannot record: the service's answer cannot be understood; restart it, should it be of another version",
                      self.said_when_answered(b"HTTP/1.1 400 Bad Request\r\n\r\n"))

    def test_one_that_says_something_else(self):
        done = struct.pack("<QII", 0x3130746370616568, 16, 0)
        self.assertIn("the service answers something else than was asked; restart it", self.said_when_answered(done))

    def test_a_mark_without_a_recording(self):
        with Place() as place:
            result = tool("mark", "half", env={**os.environ, **place.env})
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("cannot mark half: nothing is being recorded for this user; start heap_profile first", result.stderr)


@unittest.skipUnless(MAY_ATTACH, "attaching is not allowed here")
class Attaching(Situation):
    def test_a_number_that_is_no_process(self):
        result = Attached(NOT_A_PID, 50).result
        self.assertIn(f"cannot attach to process {NOT_A_PID}: there is no such process; check the number", result.stderr)

    def test_a_process_without_descriptors_is_told_its_limit(self):
        name = "limited" + str(os.getpid())
        with Running([shutil.copy(program("patient"), self.path(name)), "1"], stdin=subprocess.PIPE) as target, Place() as place:
            resource.prlimit(target.pid, resource.RLIMIT_NOFILE, (3, 3))
            result = tool("-n", name, "-d", "50", "-o", self.path("out"), env={**os.environ, **place.env})
        self.assertIn("a pair of sockets could not be made in it: Too many open files; check its limits on memory and open files",
                      result.stderr)
        self.assertIn("nothing recorded: no process that was asked for could be recorded; the lines above say why",
                      result.stderr)

    def test_a_process_with_room_for_too_few_descriptors_is_told_its_limit_and_keeps_none(self):
        with Running([program("patient"), "1"], stdin=subprocess.PIPE) as target:
            files = os.listdir(f"/proc/{target.pid}/fd")
            for limit in range(len(files), len(files) + 4):
                with self.subTest(limit=limit):
                    resource.prlimit(target.pid, resource.RLIMIT_NOFILE, (limit, 100))
                    result = Attached(target.pid, 50).result
                    self.assertRegex(result.stderr, "Too many open files; check its limits on memory and open files"
                                                    "|it has no descriptors left for the memory files; raise its limit on open files")
                    self.assertEqual(os.listdir(f"/proc/{target.pid}/fd"), files)

    def test_functions_that_somebody_else_has_changed_are_left_so(self):
        with Running([program("patient"), "1"], stdin=subprocess.PIPE) as target, Engine() as engine:
            recording = engine.tool("-p", str(target.pid), "-o", self.path("out"), stderr=subprocess.PIPE, text=True)
            while "Profiling active" not in (line := recording.stderr.readline()):
                self.assertTrue(line)
            with open(f"/proc/{target.pid}/maps") as maps:
                base, library = next((int(line.split("-")[0], 16), line.split()[5]) for line in maps if "/libc.so.6" in line)
            symbols = subprocess.run(["nm", "-D", library], capture_output=True, text=True, check=True).stdout
            address = base + int(re.search(r"^(\w+) . valloc@", symbols, re.MULTILINE)[1], 16)
            with open(f"/proc/{target.pid}/mem", "r+b", 0) as memory:  # nobody calls it
                memory.seek(address)
                memory.write(b"\xcc")
            recording.send_signal(signal.SIGINT)
            _, errors = recording.communicate(timeout=60)
        self.assertIn(f"1 functions of process {target.pid} were changed by somebody else meanwhile and were left so", errors)

    def test_a_go_program_is_known_by_its_allocator(self):
        source = "#include <stdio.h>\nint runtime_mallocgc; int main(void) { puts(\"ready\"); fflush(stdout); getchar(); }"
        go = self.compile("go", source)
        subprocess.run(["objcopy", "--redefine-sym", "runtime_mallocgc=runtime.mallocgc", go], check=True)
        with Running([go], stdin=subprocess.PIPE) as target:
            said = tool("doctor", "-p", str(target.pid)).stdout
        self.assertIn("it is a Go program: only what its C code allocates is seen; use Go's pprof for the rest", said)

    def test_java_is_no_word_for_another_program(self):
        with Running([program("patient"), "1"], stdin=subprocess.PIPE) as target:
            result = tool("java", "-p", str(target.pid), "histogram")
        self.assertIn("it has no HotSpot virtual machine (libjvm.so); jcmd -l lists those that are running", result.stderr)


if __name__ == "__main__":
    unittest.main()
