"""Heaps that programs register through heapprofd/heap_profile.h."""

import contextlib
import glob
import json
import math
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import trace_pb2
from profile_run import HEAP_PROFILE, REQUESTED, VIEWS, Pprof, Started, program, run

KNOWN = [program("custom_heaps")]


class CustomHeaps(unittest.TestCase):
    def check_exactly(self, result):
        for heap, functions in json.loads(result.stdout).items():
            for function, (count, size, live_count, live_size) in functions.items():
                found = result.heap(heap).of(function)
                self.assertEqual(tuple(found[view] for view in VIEWS), (count, size, live_count, live_size), function)

    def test_each_heap_has_a_profile_of_its_own(self):
        result = run(KNOWN, ["-i", "1", "--all-heaps"])
        self.assertEqual(result.exit_code, 0, result.stderr)
        self.assertEqual({p.heap for p in result.pprofs}, {"libc.malloc", "com.example.blocks", "com.example.slots"})
        self.check_exactly(result)
        self.assertEqual(result.heap("libc.malloc").of("takes_blocks")["space"], 250 * 1024)

    def test_stacks_begin_with_the_caller_of_the_report(self):
        result = run(KNOWN, ["-i", "1", "--all-heaps"])
        for functions, _ in result.heap("com.example.blocks").stacks():
            self.assertEqual(functions[:4], ["AHeapProfile_reportAllocation", "block_alloc", "takes_blocks", "main"])

    def test_what_tells_another_profilers_library_to_wait_does_not_make_ours_wait(self):
        with tempfile.TemporaryDirectory() as directory:
            done = subprocess.run(KNOWN, capture_output=True, timeout=60, env={
                **os.environ, "HEAPPROFD_DIRECTORY": directory, "LD_PRELOAD": "libm.so.6",
                "PERFETTO_HEAPPROFD_BLOCKING_INIT": "1"})
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_estimates_lie_within_five_standard_errors(self):
        result = run(KNOWN + ["50"], ["--all-heaps", "-i", "512"])
        for heap, functions in json.loads(result.stdout).items():
            for function, (count, size, _, _) in functions.items():
                p = -math.expm1(-(size / count) / 512) if size / count < 512 else 1
                error = math.sqrt(count * (1 - p) / p)
                found = result.heap(heap).of(function)
                self.assertLessEqual(abs(found["alloc_objects"] - count), 5 * error + 1, function)

    def test_without_a_wish_only_malloc_is_recorded(self):
        result = run(KNOWN, ["-i", "1"])
        self.assertEqual({p.heap for p in result.pprofs}, {"libc.malloc"})

    def test_named_heaps_have_their_own_intervals(self):
        result = run(KNOWN, ["--heaps", "com.example.blocks=1,com.example.slots"])
        self.assertEqual({p.heap for p in result.pprofs}, {"com.example.blocks", "com.example.slots"})
        self.assertEqual(result.heap("com.example.blocks").profile.period, 1)
        self.assertEqual(result.heap("com.example.slots").profile.period, 4096)
        self.assertEqual(result.heap("com.example.blocks").of("takes_blocks")["space"], 256000)

    def test_malloc_can_have_an_interval_of_its_own(self):
        result = run(KNOWN, ["--heaps", "libc.malloc=1,com.example.slots=7"])
        self.assertEqual(result.heap("libc.malloc").profile.period, 1)
        self.assertEqual(result.heap("libc.malloc").of("takes_blocks")["space"], 250 * 1024)
        self.assertEqual(result.heap("com.example.slots").of("takes_slots")["space"], 14000)

    def test_excluded_heaps_are_left_out(self):
        result = run(KNOWN, ["-i", "1", "--all-heaps", "--exclude-heaps", "com.example.slots,libc.malloc"])
        self.assertEqual({p.heap for p in result.pprofs}, {"com.example.blocks"})

    def test_the_program_runs_the_same_without_a_profiler(self):
        self.assertEqual(subprocess.run(KNOWN, capture_output=True, text=True).returncode, 0)

    def test_what_was_not_recorded_is_named(self):
        self.assertIn("com.example.blocks, com.example.slots; add --all-heaps", run(KNOWN, ["-i", "1"]).stderr)
        self.assertIn("the program registered no heap named absent; --all-heaps records and names those it has", run(KNOWN, ["--heaps", "absent"]).stderr)

    def test_a_statically_linked_program_reports_its_heaps(self):
        result = run([program("static_heaps")], ["-i", "1", "--all-heaps"])
        self.assertEqual({p.heap for p in result.pprofs}, {"com.example.blocks", "com.example.slots"})
        self.check_exactly(result)

    def test_a_trace_tells_why_malloc_is_not_in_it(self):
        self.assertIn(b"malloc cannot be seen in this process, only heaps that it reports; use --all-heaps, or start it",
                      run([program("static_heaps")], ["-i", "1"]).trace_bytes)

    def test_a_wrong_selection_is_refused(self):
        for options in (["--heaps", ""], ["--heaps", "x" * 64], ["--heaps", "a=0"], ["--exclude-heaps", "a"],
                        ["--heaps", ",".join(f"h{i}" for i in range(65))]):
            result = run(["true"], options)
            self.assertEqual(result.exit_code, 2, options)
            self.assertIn("heap_profile: cannot ", result.stderr)

    def test_255_heaps_and_8_threads_lose_nothing(self):
        result = run([program("many_heaps")], ["-i", "1", "--heaps", "absent", "--all-heaps"])
        self.assertEqual((result.exit_code, result.stdout), (0, "last id 255, refuses 1 1\n"), result.stderr)
        profiles = {p.heap: p for p in result.pprofs}
        for number in range(1, 256):
            profile = profiles[f"{number:03}" + "n" * 60]
            self.assertEqual(profile.total("alloc_objects"), 8 * number)
            self.assertEqual(profile.total("space"), 0 if number % 2 == 0 else 8 * number * 16)
            labelled = profile.by_label("alloc_objects")
            self.assertEqual([labelled[(("thread", f"thread {i}"),)] for i in range(8)], [(number + 1) // 2] * 8)


class HeapLife(unittest.TestCase):
    def test_a_forked_child_has_heaps_of_its_own(self):
        result = run([program("heap_life")], ["-i", "1", "--all-heaps"])
        self.assertEqual(result.exit_code, 0, result.stderr)
        parent, child = sorted((p for p in result.pprofs if p.heap == "com.example.life"), key=lambda p: p.pid)
        self.assertEqual(parent.of("in_parent")["space"], 1000 * 1000)
        self.assertEqual((child.of("in_child")["space"], child.of("in_parent")["space"]), (100 * 300, 0))

    def test_the_end_of_the_session_is_told_once(self):
        with tempfile.TemporaryDirectory() as directory:
            answer = os.path.join(directory, "answer")
            started = Started([program("heap_life"), answer], ["-i", "1", "--all-heaps"], start_new_session=True)
            self.assertEqual(started.process.stdout.readline(), "ready\n")
            started.process.send_signal(signal.SIGINT)  # for the program, which ignores it
            deadline = time.monotonic() + 30
            while started.process.poll() is None and time.monotonic() < deadline:
                started.process.send_signal(signal.SIGINT)  # for the recording
                with contextlib.suppress(subprocess.TimeoutExpired):
                    started.process.wait(0.1)
            started.finish()
            with open(answer) as file:
                self.assertEqual(file.read(), "disabled 1\n")


class Probes(unittest.TestCase):
    @unittest.skipUnless(shutil.which("gdb"), "gdb listens to the probes, and is not installed")
    def test_a_listener_gets_sampled_allocations_with_their_weight_and_their_frees(self):
        script = ["set debuginfod enabled off", "break main", "run", "delete",
                  "break -probe-stap otel_memory:alloc", "continue", "delete",
                  'printf "alloc %lu %lu %lu\\n", (long)$_probe_arg0, (long)$_probe_arg1, (long)$_probe_arg2',
                  "break -probe-stap otel_memory:free", "continue", "delete",
                  'printf "free %lu\\n", (long)$_probe_arg0', "kill"]
        commands = [part for line in script for part in ("-ex", line)]
        result = run(["gdb", "-nx", "-batch", *commands, *KNOWN], ["--heaps", "com.example.blocks=100000"])
        _, size, weighted = re.search(r"alloc (\d+) (\d+) (\d+)", result.stdout).groups()
        self.assertEqual(int(size), 1024)
        self.assertAlmostEqual(int(weighted), 1024 / -math.expm1(-1024 / 100000), delta=2)
        self.assertRegex(result.stdout, r"free [1-9]\d+")


    @unittest.skipUnless(shutil.which("bpftrace") and os.geteuid() == 0, "bpftrace listens, as root")
    def test_bpftrace_sees_every_sample_with_its_weight_and_every_free(self):
        library = os.path.join(os.environ["BUILD_DIRECTORY"], "src", "client", "libheapprofd_preload.so")
        ours = f'/comm == "{os.path.basename(KNOWN[0])}"/'  # not those of tests that run meanwhile
        script = (f'usdt:{library}:otel_memory:alloc {ours} {{ printf("%d alloc %d %d\\n", pid, arg1, arg2); }} '
                  f'usdt:{library}:otel_memory:free {ours} {{ printf("%d free\\n", pid); }}')
        with tempfile.TemporaryFile("w+") as output:
            listener = subprocess.Popen(["bpftrace", "-B", "line", "-e", script], stdout=output, stderr=subprocess.STDOUT)
            seen = []
            deadline = time.monotonic() + 60
            while len(seen) < 2 and listener.poll() is None and time.monotonic() < deadline:
                run(KNOWN, ["-q", "--heaps", "com.example.blocks=1"])
                output.seek(0)
                lines = output.read().splitlines()
                seen = sorted({line.split()[0] for line in lines if " free" in line} &
                              {line.split()[0] for line in lines if " alloc " in line}, key=int)
            listener.send_signal(signal.SIGINT)
            listener.wait()
            output.seek(0)
            lines = output.read().splitlines()
        if len(seen) < 2:
            self.skipTest("this kernel lets bpftrace attach nothing: " + " ".join(lines[:3]))
        # It listened from before the second one's beginning.
        self.assertEqual(lines.count(f"{seen[1]} alloc 1024 1024"), 1000)
        self.assertEqual(lines.count(f"{seen[1]} free"), 750)


class Annotations(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.result = run([program("annotated")], ["-i", "1", "--all-heaps"])

    def test_profiles_made_from_the_trace_are_those_of_the_recording(self):
        with tempfile.TemporaryDirectory() as directory:
            trace = os.path.join(directory, "raw-trace")
            with open(trace, "wb") as file:
                file.write(self.result.trace_bytes)
            subprocess.run([HEAP_PROFILE, "traceconv", "profile", "--output-dir", directory, trace], check=True,
                           capture_output=True)
            paths = glob.glob(os.path.join(directory, "**", "heap_dump.*"), recursive=True)
            converted = [Pprof(path) for path in paths]
        # The pool as of the requested dump, when malloc had not been called yet, and both as of the end.
        self.assertEqual(sorted(p.heap for p in converted), ["com.example.pool"] * 2 + ["libc.malloc"])
        for heap in ("libc.malloc", "com.example.pool"):
            of_heap = [p for p in converted if p.heap == heap]
            last = max(of_heap, key=lambda p: p.total("alloc_space"))
            self.assertEqual(last.by_label("space"), self.result.heap(heap).by_label("space"))

    def test_the_interface_keeps_its_promises(self):
        self.assertEqual(self.result.stdout, "enabled 1 interval 1 refuses 1\n")

    def test_what_a_pool_takes_from_malloc_is_counted_once(self):
        self.assertEqual(self.result.heap("libc.malloc").of("takes_chunk")["alloc_space"], 0)
        self.assertEqual(self.result.heap("com.example.pool").of("serves")["space"], 16 * 4000)
        self.assertIn("in 203 calls", self.result.stderr)  # labelled's and stdio's, without the chunk

    def test_a_pool_that_is_not_recorded_leaves_its_chunk_to_malloc(self):
        result = run([program("annotated")], ["-i", "1"])
        self.assertEqual(result.heap("libc.malloc").of("takes_chunk")["alloc_space"], 65536)

    def test_samples_of_the_program_count_as_they_are(self):
        found = self.result.heap("com.example.pool").of("reports_samples")
        self.assertEqual((found["alloc_objects"], found["space"]), (10, 10_000_000))
        result = run([program("annotated")], ["--heaps", "com.example.pool=1000000000"])
        self.assertEqual(result.heap("com.example.pool").of("reports_samples")["space"], 10_000_000)

    def test_labels_reach_the_samples(self):
        sums = self.result.heap("libc.malloc").by_label("space")
        self.assertEqual(sums[(("tenant", "acme"),)], 25 * 100)
        self.assertEqual(sums[(("tenant", "globex"),)], 75 * 100)
        self.assertEqual(sums[(("request", "query"), ("tenant", "acme"))], 25 * 1000)
        self.assertEqual(sums[(("request", "query"), ("tenant", "globex"))], 75 * 1000)
        self.assertEqual(sums[(("level", "456"), ("level", "3456"), ("level", "23456"), ("level", "123456"))], 77)
        self.assertEqual(self.result.heap("libc.malloc").of("labelled")["space"], 100 * 1100 + 77)

    def test_labels_are_the_outermost_frames_in_the_trace(self):
        trace = trace_pb2.Trace.FromString(self.result.trace_bytes)
        names = {}
        stacks = []
        frames = {}
        for packet in trace.packet:
            names.update((name.iid, name.str.decode()) for name in packet.interned_data.function_names)
            frames.update((frame.iid, frame) for frame in packet.interned_data.frames)
            stacks += packet.interned_data.callstacks
        outermost = {names.get(frames[stack.frame_ids[0]].function_name_id) for stack in stacks}
        self.assertLessEqual({"tenant=acme", "tenant=globex", "level=123456"}, outermost)

    def test_a_requested_dump_has_its_own_profile_as_of_its_moment(self):
        pools = [p for p in self.result.pprofs if p.heap == "com.example.pool"]
        self.assertEqual([(p.number, REQUESTED in p.comments) for p in pools], [("1", True), (pools[1].number, False)])
        self.assertEqual(pools[0].total("space"), 64_000)
        self.assertEqual(pools[1].total("space"), 10_064_000)

    def test_labels_are_a_table_in_sql(self):
        with tempfile.TemporaryDirectory() as directory:
            trace = os.path.join(directory, "raw-trace")
            with open(trace, "wb") as file:
                file.write(self.result.trace_bytes)
            answer = subprocess.run(
                [HEAP_PROFILE, "query", "--json", trace,
                 "SELECT l.value AS tenant, sum(a.size) AS live FROM heap_profile_allocation a "
                 "JOIN heap_profile_label l USING (callsite_id) WHERE l.key = 'tenant' GROUP BY 1 ORDER BY 1"],
                check=True, capture_output=True, text=True).stdout
        self.assertEqual(json.loads(answer), [{"tenant": "acme", "live": 25 * 1100}, {"tenant": "globex", "live": 75 * 1100}])

    def test_marks_and_requested_dumps_are_in_the_trace(self):
        trace = trace_pb2.Trace.FromString(self.result.trace_bytes)
        marks = [(packet.track_event.name, packet.timestamp) for packet in trace.packet if packet.HasField("track_event")]
        self.assertEqual([name for name, _ in marks], ["before the pool", "after the pool"])
        dumps = [dump for packet in trace.packet for dump in packet.profile_packet.process_dumps
                 if dump.heap_name == "com.example.pool"]
        self.assertEqual(len(dumps), 2)
        self.assertLessEqual(marks[0][1], dumps[0].timestamp)
        self.assertLessEqual(dumps[0].timestamp, marks[1][1])
        self.assertEqual(sum(sample.self_allocated for sample in dumps[0].samples), 64_000)
        self.assertEqual(sum(sample.self_allocated for sample in dumps[1].samples), 10_064_000)


if __name__ == "__main__":
    unittest.main()
