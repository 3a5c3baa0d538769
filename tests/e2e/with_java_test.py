"""heap_profile --with-java: the native heap and the Java heap of one process in one trace, and where its resident memory is."""

import contextlib
import csv
import io
import os
import re
import resource
import signal
import subprocess
import time
import unittest

from browser import CHROMIUM, WithPage
from java_machine import WithMachine, next_line, remove_socket
from profile_run import HEAP_PROFILE
from running_process import DEADLINE_S, MAY_ATTACH

BOTH = """
SELECT (SELECT count(*) FROM heap_profile_allocation a WHERE a.upid = p.upid) AS native,
       (SELECT count(*) FROM heap_graph_object o JOIN heap_graph_class c ON c.id = type_id WHERE o.upid = p.upid AND c.name = 'Leaks$Pool') AS pools,
       (SELECT count(*) FROM heap_graph g WHERE g.upid = p.upid AND g.ts >= (SELECT max(ts) FROM heap_profile_allocation)) AS graphs
FROM process p WHERE p.pid = %d
"""
BUFFERS = """
SELECT count(*) AS buffers, sum(b.bytes) AS bytes, count(callsite_id) AS known, count(DISTINCT o.id) AS objects,
       sum(callsite_id IN (SELECT c.id FROM stack_profile_callsite c JOIN stack_profile_callsite p ON p.id = c.parent_id
                           JOIN stack_profile_frame f ON f.id = p.frame_id JOIN stack_profile_mapping m ON m.id = f.mapping
                           WHERE m.name LIKE '%%/libjvm.so')) AS of_machine
FROM heap_profile_direct_buffer b JOIN process USING (upid)
  JOIN heap_graph_object o ON o.id = b.object_id AND o.upid = b.upid JOIN heap_graph_class c ON c.id = o.type_id
WHERE c.name = 'java.nio.DirectByteBuffer' AND b.bytes = 100000 AND pid = %d
"""
GRAPHS = """
SELECT count(DISTINCT iif(c.name = 'Leaks$Pool', o.id, NULL)) AS pools, (SELECT count(DISTINCT d.ts) FROM heap_dump d WHERE d.upid = g.upid AND d.ts <= g.ts) AS natives
FROM heap_graph g JOIN process p USING (upid) JOIN heap_graph_object o ON o.upid = g.upid AND o.graph_sample_ts = g.ts JOIN heap_graph_class c ON c.id = o.type_id
WHERE p.pid = %d GROUP BY g.ts ORDER BY g.ts
"""
SIZE = r"[\d.,]+ (?:[KMG]i)?B"


def end(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    remove_socket(pid)


class WithBoth(WithMachine):
    def rows(self, pid, query=BOTH):
        done = subprocess.run([HEAP_PROFILE, "query", "--csv", os.path.join(self.out, "raw-trace"), query % pid], capture_output=True,
                              text=True, timeout=DEADLINE_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        return list(csv.DictReader(io.StringIO(done.stdout)))

    def check_both(self, pid):
        rows = self.rows(pid)
        self.assertEqual(len(rows), 1, rows)
        self.assertGreater(int(rows[0]["native"]), 0)
        self.assertEqual((rows[0]["pools"], rows[0]["graphs"]), ("1", "1"))

    def check_table(self, text, pid):
        table = text[text.index("  resident memory of process"):]
        self.assertRegex(table, rf"^  resident memory of process {pid} \(java\): {SIZE}, of which\n")
        for row in (rf"Java heap: {SIZE} used of {SIZE} committed", rf"compiled code: {SIZE} used of {SIZE} committed",
                    r"stacks of \d+ of \d+ threads", "mapped files", "the rest; known of it:",
                    rf"live in malloc, by the samples: {SIZE} to {SIZE}", rf"classes \(metaspace\) committed, {SIZE} used",
                    "100 direct buffers, most of malloc; held by", r"Leaks\$Pool"):
            self.assertRegex(table, rf"(?m)^ +{SIZE}  {row}$")
        self.assertRegex(table, r"(?m)^ +9.54 MiB  Leaks\$Pool$")

    def setUp(self):
        super().setUp()
        self.out = self.path("out")

    def launch(self, *flags, java=()):
        """A program under the profiler."""
        with open(self.path("errors"), "w") as errors:
            process = subprocess.Popen([HEAP_PROFILE, "--with-java", "-o", self.out, *flags, "--", "java", "-XX:-UsePerfData", "-Xmx64m", *java,
                                        "-cp", self.classes, "Leaks", "buffers"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                                       text=True)
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        self.assertEqual(next_line(process), "ready\n")
        return process

    def errors(self):
        with open(self.path("errors")) as file:
            return file.read()

    def child_of(self, process):
        """The program, which is gone when the test is over."""
        with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
            for child in file.read().split():
                with open(f"/proc/{child}/comm") as comm:
                    if comm.read() == "java\n":
                        self.addCleanup(end, int(child))
                        return int(child)
        raise LookupError("java")

    def graphs(self, pid):
        """(pools, native dumps before it) of each graph, in time."""
        rows = self.rows(pid, GRAPHS)
        return [(int(row["pools"]), int(row["natives"])) for row in rows]

    def record(self, dumps, *machines):
        """A service's recording of these, with so many dumps of Java heaps."""
        with open(self.path("errors"), "w") as errors:
            process = subprocess.Popen([HEAP_PROFILE, "--with-java", "--java-dumps", dumps, "-p", ",".join(str(java.pid) for java in machines),
                                        "-o", self.out], stderr=errors)
        self.addCleanup(lambda: (process.kill(), process.wait()))
        self.await_errors("Profiling active", process)
        return process

    def wait_until(self, condition, process):
        end_s = time.monotonic() + DEADLINE_S
        while not condition():
            self.assertIsNone(process.poll(), self.errors())
            self.assertLess(time.monotonic(), end_s, self.errors())
            time.sleep(0.01)

    def await_errors(self, pattern, process):
        """Until it has said that."""
        self.wait_until(lambda: re.search(pattern, self.errors()), process)

    def descriptors(self, process, kind):
        """How many of these a process has."""
        folder = f"/proc/{process.pid}/fd"
        count = 0
        for name in os.listdir(folder):
            with contextlib.suppress(OSError):
                count += os.readlink(os.path.join(folder, name)).startswith(kind)
        return count

    TOOK = r"process \d+ \(java\) took [\d.]+ m?s to dump [\d.]+ MiB\n"

    def children_of(self, process):
        with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
            children = file.read().split()
        lines = []
        for child in children:
            with contextlib.suppress(OSError), open(f"/proc/{child}/cmdline") as file:
                lines.append(file.read())
        return lines


class Both(WithBoth):
    @unittest.skipUnless(MAY_ATTACH, "may not attach")
    def test_of_a_running_process(self):
        process = self.start(program=["Leaks", "buffers"])
        done = subprocess.run([HEAP_PROFILE, "--with-java", "-p", str(process.pid), "-d", "300", "-i", "1", "-o", self.out], capture_output=True,
                              text=True, timeout=DEADLINE_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"took [\d.]+ m?s to dump [\d.]+ MiB of its Java heap\n")
        self.assertRegex(done.stderr, r"100 direct buffers, most of malloc; held by\n +9.54 MiB  Leaks\$Pool\n")
        self.assertRegex(done.stderr, rf"(?m)^ +{SIZE}  in \d+ of them without a stack: allocated before or after the recording, or not by malloc$")
        self.assertEqual(self.rows(process.pid)[0]["pools"], "1")
        row, = self.rows(process.pid, BUFFERS)
        self.assertEqual((row["buffers"], row["known"]), ("100", "0"))
        self.assertIsNone(process.poll())
        self.assertTrue(os.path.exists(os.path.join(self.out, "report.html")))

    @unittest.skipUnless(MAY_ATTACH, "may not attach")
    def test_it_is_in_the_trace_also_where_a_pprof_file_cannot_be_written(self):
        process = self.start(program=["Leaks", "buffers"])
        with subprocess.Popen([HEAP_PROFILE, "--with-java", "-p", str(process.pid), "-i", "1", "-o", self.out], stderr=subprocess.PIPE,
                              text=True) as run:
            self.assertEqual(run.stderr.readline(), "Profiling active. Press Ctrl+C to terminate.\n")
            # So that it allocates.
            subprocess.run([HEAP_PROFILE, "java", "-p", str(process.pid)], check=True, capture_output=True, timeout=DEADLINE_S)
            os.mkdir(os.path.join(self.out, f"heap_dump.1.{process.pid}.libc.malloc.pb.gz"))  # which no file takes the place of
            run.send_signal(signal.SIGINT)
            _, errors = run.communicate(timeout=DEADLINE_S)
        self.assertEqual(run.returncode, 1, errors)
        self.assertRegex(errors, "cannot make the pprof files: cannot create .*: Is a directory; try heap_profile traceconv profile ")
        self.assertNotIn("is left out", errors)
        self.check_both(process.pid)

    def test_where_the_trace_cannot_be_written_it_is_left_out(self):
        process = self.launch()
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (16384, 16384))  # enough for what it says
        self.child_of(process)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(DEADLINE_S), 128 + signal.SIGTERM, self.errors())
        self.assertIn("the Java heap is left out: there is no complete trace that it could be added to\n", self.errors())

    def test_that_malloc_was_not_recorded_is_told(self):
        _, _, errors = self.buffers_of_launched("--heaps", "of.nobody")
        self.assertRegex(errors, rf"(?m)^ +{SIZE}  in 100 of them without a stack: the trace has nothing of malloc in this process$")
        self.assertNotIn("live in malloc", errors)

    def test_interrupt_asks_before_the_program_ends(self):
        process = self.launch()
        pid = self.child_of(process)
        os.kill(pid, signal.SIGINT)  # as the terminal does to both
        process.send_signal(signal.SIGINT)
        # Its standard input stays open: the program would end.
        self.assertEqual(process.wait(DEADLINE_S), 128 + signal.SIGTERM, self.errors())
        self.check_both(pid)
        self.check_table(self.errors(), pid)

    def buffers_of_launched(self, *flags, java=()):
        """What is known of the program's buffers, and what was printed."""
        process = self.launch(*flags, java=java)
        pid = self.child_of(process)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(DEADLINE_S), 128 + signal.SIGTERM, self.errors())
        row, = self.rows(pid, BUFFERS)
        self.assertEqual((row["buffers"], row["bytes"], row["objects"]), ("100", "10000000", "100"))
        return int(row["known"]), int(row["of_machine"]), self.errors()

    def test_each_buffer_has_the_stack_that_allocated_it(self):
        for java in ([], ["-XX:NativeMemoryTracking=summary"], ["-Dsun.nio.PageAlignDirectMemory=true"]):
            with self.subTest(java):
                self.out = self.path("out" + "".join(java)[-8:])
                known, of_machine, errors = self.buffers_of_launched("-i", "1", java=java)
                self.assertEqual((known, of_machine), (100, 100))
                self.assertRegex(errors, rf"(?m)^ +9.54 MiB  Leaks\$Pool\n +{SIZE}  by .+$")
                self.assertNotIn("without a stack", errors)

    def test_what_sampling_misses_is_told(self):
        # Each buffer is a sample with probability 1 - exp(-1/2): these limits are 6 standard deviations away.
        known, _, errors = self.buffers_of_launched("-i", "200000")
        self.assertGreater(known, 9)
        self.assertLess(known, 70)
        self.assertRegex(errors, rf"(?m)^ +{SIZE}  in {100 - known} of them without a stack: "
                         rf"1 sample per 195 KiB misses about {SIZE}(; the rest: .*)?$")

    def test_when_its_time_is_over_the_program_runs_on(self):
        process = self.launch("-d", "10000")
        pid = self.child_of(process)
        self.assertEqual(process.wait(DEADLINE_S), 0, self.errors())
        self.assertIn(f"(pid {pid}) runs on unprofiled", self.errors())
        self.check_both(pid)

    def test_a_program_that_has_ended_cannot_be_asked(self):
        process = self.launch()
        process.communicate("\n", timeout=DEADLINE_S)
        self.assertEqual(process.returncode, 1, self.errors())
        self.assertRegex(self.errors(), r"heap_profile: cannot ask process \d+ for its Java heap: it has ended; give --duration or end the recording by Ctrl-C\n")
        self.assertNotIn("resident memory of", self.errors())

    def test_marks_have_dumps_of_both_kinds(self):
        process = self.launch("--java-dumps", "2")
        pid = self.child_of(process)
        for count in (1, 2):
            process.send_signal(signal.SIGUSR1)
            self.await_errors("(" + self.TOOK + "){%d}" % count, process)
        process.send_signal(signal.SIGUSR1)  # one too many, which is taken before the recording ends
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(DEADLINE_S), 128 + signal.SIGTERM, self.errors())
        self.assertEqual([pools for pools, _ in self.graphs(pid)], [1, 1, 1])
        self.assertNotIn("hprof", " ".join(os.listdir(self.out)))
        self.assertIn("heap_profile: 1 dump of the Java heap was left out: 1 because --java-dumps allows 2\n", self.errors())
        row, = self.rows(pid, BUFFERS)  # of the end only: the list of blocks is the end's
        self.assertEqual(row["buffers"], "100")

    @unittest.skipUnless(MAY_ATTACH, "may not attach")
    def test_marks_of_a_service_have_dumps_of_both_kinds(self):
        java = self.start(program=["Leaks", "buffers"])
        process = self.record("3", java)
        mark = subprocess.run([HEAP_PROFILE, "mark", "half"], capture_output=True, text=True, timeout=DEADLINE_S)
        self.assertEqual(mark.returncode, 0, mark.stderr)
        self.await_errors(self.TOOK, process)
        process.send_signal(signal.SIGUSR1)
        self.await_errors("(" + self.TOOK + "){2}", process)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(DEADLINE_S), 0, self.errors())
        self.assertEqual([pools for pools, _ in self.graphs(java.pid)], [1, 1, 1])
        self.assertNotIn("left out", self.errors())
        self.assertIsNone(java.poll())

    def test_each_so_often_has_a_dump_of_both_kinds(self):
        process = self.launch("--java-dumps", "1", "-c", "200")
        pid = self.child_of(process)
        self.await_errors(self.TOOK, process)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(DEADLINE_S), 128 + signal.SIGTERM, self.errors())
        self.assertEqual(len(self.graphs(pid)), 2, self.errors())

    def ask(self, process, pid):
        """For a dump that comes to no end: the machine stands still."""
        os.kill(pid, signal.SIGSTOP)
        self.addCleanup(end, pid)
        process.send_signal(signal.SIGUSR1)
        # It is asked for by a process of its own.
        self.wait_until(lambda: any("--no-view" in line for line in self.children_of(process)), process)

    def test_told_to_end_it_does_not_go_on_when_it_has_left_the_dump(self):
        process = self.launch("--java-dumps", "1")
        pid = self.child_of(process)
        self.ask(process, pid)
        before = self.descriptors(process, "anon_inode:[signalfd]")
        process.send_signal(signal.SIGINT)
        # It waits for the dump with descriptors for signals of its own.
        self.wait_until(lambda: self.descriptors(process, "anon_inode:[signalfd]") >= before + 2, process)
        process.send_signal(signal.SIGTERM)
        self.assertNotEqual(process.wait(DEADLINE_S), 0, self.errors())
        self.assertIn(f"a dump of the Java heap of process {pid} (java) is left out: it was ended by the interrupt\n", self.errors())
        self.assertIn("cannot make the report: it was interrupted; ", self.errors())
        self.assertFalse(os.path.exists(os.path.join(self.out, "report.html")))
        self.assertNotIn("hprof", " ".join(os.listdir(self.out)))

    @unittest.skipUnless(MAY_ATTACH, "may not attach")
    def test_when_the_end_is_near_no_dump_of_another_begins(self):
        machines = [self.start(program=["Leaks", "buffers"]) for _ in range(2)]
        process = self.record("1", *machines)
        self.ask(process, machines[0].pid)
        process.send_signal(signal.SIGINT)
        self.wait_until(lambda: self.descriptors(process, "socket:") == 0, process)  # the service has ended the recording
        process.send_signal(signal.SIGINT)
        self.await_errors("left out: it was ended by the interrupt", process)
        os.kill(machines[0].pid, signal.SIGCONT)
        process.wait(DEADLINE_S)
        self.assertIn("1 dump of the Java heap was left out: 1 because the recording was ending\n", self.errors())

    @unittest.skipUnless(MAY_ATTACH, "may not attach")
    def test_ctrl_backslash_leaves_all_to_the_service_at_once(self):
        java = self.start(program=["Leaks", "buffers"])
        process = self.record("1", java)
        self.ask(process, java.pid)
        process.send_signal(signal.SIGQUIT)
        self.assertEqual(process.wait(DEADLINE_S), 128 + signal.SIGQUIT, self.errors())
        os.kill(java.pid, signal.SIGCONT)
        trace = os.path.join(self.out, "raw-trace")
        # The service says on the same descriptor, now or later, what it has found.
        self.assertIn(
            f"heap_profile: not waiting for the end of the recording; the service writes {trace}\n"
            "heap_profile: the Java heap is left out: the end of the recording is not waited for\n"
            f"heap_profile: cannot make the report: the service still writes the trace; heap_profile report {trace} makes it\n",
            self.errors())
        self.assertFalse(os.path.exists(os.path.join(self.out, "report.html")))
        self.assertNotIn("hprof", " ".join(os.listdir(self.out)))

    def test_one_that_stands_still_is_left_when_the_recording_is_over(self):
        process = self.launch("--java-dumps", "1")
        pid = self.child_of(process)
        self.ask(process, pid)
        process.send_signal(signal.SIGINT)
        left = (rf"heap_profile: (a dump of the Java heap of process {pid} \(java\) is left out: it was ended by the interrupt|"
                r"cannot take a heap dump of .* it has not begun to listen within .* ask it alone by heap_profile java, which has --timeout)\n")
        end_s = time.monotonic() + DEADLINE_S
        while process.poll() is None:  # the second one ends the dump, and the third that of the end
            self.assertLess(time.monotonic(), end_s, self.errors())
            process.send_signal(signal.SIGINT)
            time.sleep(0.1)
            if re.search(left, self.errors()):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
        self.assertRegex(self.errors(), left)
        self.assertNotIn("hprof", " ".join(os.listdir(self.out)))

    @unittest.skipUnless(MAY_ATTACH, "may not attach")
    def test_each_of_several_has_its_table(self):
        processes = [self.start(program=["Leaks", "buffers"]) for _ in range(2)]
        done = subprocess.run([HEAP_PROFILE, "--with-java", "-p", ",".join(str(process.pid) for process in processes), "-d", "300", "-i", "1",
                               "-o", self.out], capture_output=True, text=True, timeout=DEADLINE_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        tables = done.stderr.split("  resident memory of ")[1:]
        self.assertEqual([table.split(" ")[1] for table in tables], [str(process.pid) for process in processes], done.stderr)
        for process, table in zip(processes, tables):
            # A machine that waits may allocate nothing meanwhile.
            self.assertRegex(table, rf"(?m)^ +{SIZE}  live in malloc(, by the samples: {SIZE} to {SIZE}| of what the recording has seen: nothing.*)$")
            self.assertEqual(self.rows(process.pid)[0]["pools"], "1")

    @unittest.skipUnless(MAY_ATTACH, "may not attach")
    def test_one_that_does_not_listen_is_left_with_advice_that_works(self):
        process = self.start("-XX:+DisableAttachMechanism", program=["Leaks", "buffers"])
        done = subprocess.run([HEAP_PROFILE, "--with-java", "-p", str(process.pid), "-d", "300", "-i", "1", "-o", self.out], capture_output=True,
                              text=True, timeout=DEADLINE_S)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("and if not, ask it alone by heap_profile java, which has --timeout\n", done.stderr)
        self.assertNotIn("wait longer", done.stderr)
        self.assertIsNone(process.poll())

    def test_others_are_refused_before_anything_is_recorded(self):
        other = subprocess.Popen(["sleep", "1000"])
        self.addCleanup(lambda: (other.kill(), other.wait()))
        done = subprocess.run([HEAP_PROFILE, "--with-java", "-p", str(other.pid), "-o", self.out], capture_output=True, text=True, timeout=DEADLINE_S)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("it has no HotSpot virtual machine", done.stderr)
        self.assertFalse(os.path.exists(self.out))


@unittest.skipUnless(CHROMIUM, "no Chromium here")
class OnTheTimeline(WithPage, WithBoth):
    def test_both_kinds_of_dumps_are_there_and_a_click_goes_to_the_other(self):
        process = self.launch("--java-dumps", "1")
        process.send_signal(signal.SIGUSR1)
        self.await_errors(self.TOOK, process)
        self.child_of(process)  # which is gone at the end
        process.send_signal(signal.SIGINT)
        process.wait(DEADLINE_S)
        self.page.open(os.path.join(self.out, "report.html"), "#page=timeline")
        self.page.evaluate("heapReport.set({moment: heapReport.heaps.find((heap) => heap.name === 'libc.malloc').end.index})")
        self.page.wait("heapReport.heap.name === 'libc.malloc'")
        count = "[heapReport.timeline.points.filter((point) => point.dump >= 0 && !point.isPeak).length, heapReport.timeline.others.length]"
        self.assertEqual(self.page.evaluate(count), [2, 2])
        x, y = self.page.evaluate("((view, point) => (({x, y}) => [x + view.x(point.time), y + view.y(point.value)])("
                                  "view.canvas.getBoundingClientRect()))(heapReport.timelineView, heapReport.timeline.others[0])")
        self.page.click(x, y)
        self.page.wait("heapReport.heap.name.startsWith('managed')")
        self.assertEqual(self.page.evaluate(count), [2, 2])


if __name__ == "__main__":
    unittest.main()
