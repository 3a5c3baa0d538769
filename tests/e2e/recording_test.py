"""Trace configurations: every field of HeapprofdConfig acts, and what is printed can be read again."""

import os
import signal
import subprocess
import tempfile
import time
import unittest

import config_pb2
from google.protobuf import text_format
from profile_run import HEAP_PROFILE, Started, program, run
from service_run import DEADLINE_S, Recording, live_bytes, wait_for
from service_test import ROUND, ServiceTest
from trace_test import Importer


def print_config(*options):
    return subprocess.run([HEAP_PROFILE, "--print-config", *options], capture_output=True, text=True, check=True).stdout


def config_of(pid=None, **fields):
    """A TraceConfig with one heapprofd source."""
    config = config_pb2.TraceConfig()
    source = config.data_sources.add().config
    source.name = "android.heapprofd"
    heapprofd = source.heapprofd_config
    heapprofd.sampling_interval_bytes = 1
    heapprofd.block_client = True
    if pid is not None:
        heapprofd.pid.append(pid)
    else:
        heapprofd.process_cmdline.append("patient")
    text_format.Merge(" ".join(f"{name}: {value}" if not str(value).startswith("{") else f"{name} {value}"
                               for name, value in fields.items()), heapprofd)
    return config


class ConfigTest(ServiceTest):
    def setUp(self):
        super().setUp()
        self.place.start()

    def record_config(self, config, *options):
        """A recording of a configuration: a message, or bytes as they are."""
        file = tempfile.NamedTemporaryFile(prefix="hpd_config")
        self.addCleanup(file.close)
        file.write(config if isinstance(config, bytes) else config.SerializeToString())
        file.flush()
        recording = Recording(self.place, [])  # only for its directory; replaced below
        recording.process.communicate()
        recording.process = subprocess.Popen(
            [HEAP_PROFILE, "record", "-c", file.name, "-o", recording.directory, *options], text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, **self.place.env})
        return recording

    def one_round(self, config, rounds=1):
        """Records a patient that starts, keeps `rounds` rounds and stays."""
        recording = self.record_config(config).wait_active()
        patient = self.patient().wait_ready()
        for _ in range(rounds):
            patient.tell("a")
        recording.finish()
        self.assertIn(recording.exit_code, (0, 4), recording.stderr)
        return recording, recording.dumps_of(patient.pid)


class PrintedConfigs(ConfigTest):
    def test_a_printed_configuration_is_a_round_trip(self):
        text = print_config("-n", "patient,other*", "-i", "64", "-c", "250", "-d", "60000", "--shmem-size", "16384",
                            "--block-client-timeout", "5", "--no-running", "--dump-at-max", "--all-heaps",
                            "--exclude-heaps", "x", "--malloc-info")
        config = text_format.Parse(text, config_pb2.TraceConfig())
        heapprofd = config.data_sources[0].config.heapprofd_config
        self.assertEqual(list(heapprofd.process_cmdline), ["patient", "other*"])
        self.assertEqual(config.duration_ms, 60000)
        self.assertTrue(config.write_into_file)
        for form in (text.encode(), config.SerializeToString()):
            recording = self.record_config(form).wait_active()
            patient = self.patient().wait_ready()
            patient.tell("a")
            recording.finish()
            self.assertEqual(recording.exit_code, 0, recording.stderr)
            kept = config_pb2.TraceConfig()
            kept.ParseFromString(next(p.trace_config for p in recording.trace.packet if p.HasField("trace_config")))
            self.assertEqual(kept, config)
            patient.end()

    def test_a_configuration_comes_through_a_pipe(self):
        recording = Recording(self.place, [], command=[
            "/bin/sh", "-c", f"{HEAP_PROFILE} --print-config -n patient -i 1 | exec {HEAP_PROFILE} record -c - -o $0/out",
            tempfile.mkdtemp(prefix="heap_profile_test_")])
        recording.directory = recording.process.args[3] + "/out"
        recording.wait_active()
        patient = self.patient().wait_ready()
        patient.tell("a")
        patient.end()
        subprocess.run(["pkill", "-INT", "-P", str(recording.process.pid)], check=False)
        recording.finish()
        self.assertEqual(recording.pprofs[0].of("kept_block")["space"], ROUND)

    def test_what_cannot_be_recorded_is_said(self):
        for text, words in [
            ("data_sources { config { name: \"android.heapprofd\" heapprofd_config { pid: 1 } } }",
             "sampling_interval_bytes"),
            ("nonsense", "line 1"),
            ("", "android.heapprofd"),
        ]:
            recording = self.record_config(text.encode()).finish(None)
            self.assertEqual(recording.exit_code, 2, text)
            self.assertIn(words, recording.stderr)


class Fields(ConfigTest):
    def test_adaptive_sampling_doubles_up_to_its_limit(self):
        _, (dump,) = self.one_round(config_of(
            adaptive_sampling_shmem_threshold=1 << 40, adaptive_sampling_max_sampling_interval_bytes=2), rounds=3)
        self.assertEqual(dump.orig_sampling_interval_bytes, 1)
        self.assertEqual(dump.sampling_interval_bytes, 2)

    def test_the_interval_of_a_heap_goes_before_the_common_one(self):
        _, (dump,) = self.one_round(config_of(heaps='"libc.malloc"', heap_sampling_intervals=512))
        self.assertEqual(dump.orig_sampling_interval_bytes, 512)

    def test_a_process_without_the_heap_says_so(self):
        _, (dump,) = self.one_round(config_of(heaps='"other"'))
        self.assertEqual(len(dump.samples), 0)
        self.assertIn("none of the heaps", dump.reason)

    def test_a_program_that_starts_while_the_service_is_stopped_waits_a_second_and_is_named(self):
        config = config_of(all="true")
        del config.data_sources[0].config.heapprofd_config.process_cmdline[:]  # or the gate would hold the program first
        recording = self.record_config(config).wait_active()
        self.addCleanup(self.place.service.send_signal, signal.SIGCONT)
        self.place.service.send_signal(signal.SIGSTOP)
        begin = time.monotonic()
        patient = self.patient().wait_ready()
        waited_s = time.monotonic() - begin
        self.place.service.send_signal(signal.SIGCONT)
        self.patient().wait_ready()  # is served behind the first one
        self.assertEqual(patient.tell("a"), "kept")
        recording.finish()
        self.assertLess(waited_s, DEADLINE_S / 2, "the program waited for a stopped service")
        self.assertRegex(recording.stderr, r"1 program was not recorded \(.*patient\): ended, or waiting no longer")

    def test_excluded_heaps_are_left_out_of_all(self):
        _, (dump,) = self.one_round(config_of(all_heaps="true", exclude_heaps='"libc.malloc"'))
        self.assertEqual(len(dump.samples), 0)
        _, (dump,) = self.one_round(config_of(all_heaps="true"))
        self.assertGreaterEqual(live_bytes(dump), ROUND)

    def test_filtered_mappings_lose_their_names(self):
        recording, _ = self.one_round(config_of(skip_symbol_prefix=f'"{os.path.realpath(program("patient"))}"'))
        functions = {name for stack, _ in recording.pprofs[0].stacks() for name in stack}
        self.assertIn("FILTERED", functions)
        self.assertNotIn("kept_block", functions)

    def test_streamed_allocations_are_the_samples(self):
        recording, (dump,) = self.one_round(config_of(stream_allocations="true"))
        streamed = [p.streaming_allocation for p in recording.trace.packet if p.HasField("streaming_allocation")]
        sizes = [size for s in streamed for size in s.size]
        self.assertEqual(len(sizes), dump.quality.samples)
        self.assertGreaterEqual(sizes.count(1000), 1000)
        self.assertEqual([size for s in streamed for size in s.sample_size], sizes)
        numbers = [n for p in recording.trace.packet
                   for n in (*p.streaming_allocation.sequence_number, *p.streaming_free.sequence_number)]
        self.assertEqual(sorted(numbers), list(range(1, len(numbers) + 1)))

    def test_other_heaps_are_streamed_too(self):
        config = config_of(stream_allocations="true", all_heaps="true")
        config.data_sources[0].config.heapprofd_config.process_cmdline[0] = "custom_heaps"
        recording = self.record_config(config).wait_active()
        process = self.patient([program("custom_heaps")])
        process.end()
        recording.finish()
        taken, freed = {}, {}
        for packet in recording.trace.packet:
            for sums, events in ((taken, packet.streaming_allocation), (freed, packet.streaming_free)):
                for heap in events.heap_id:
                    sums[heap] = sums.get(heap, 0) + 1
        for dump in recording.dumps_of(process.pid):
            self.assertIn(sum(s.alloc_count for s in dump.samples), taken.values(), dump.heap_name)
        self.assertEqual(set(taken), set(freed))
        self.assertEqual(len(taken), 3)

    def test_adaptive_sampling_keeps_its_limit_for_other_heaps(self):
        config = config_of(all_heaps="true", adaptive_sampling_shmem_threshold=1 << 40,
                           adaptive_sampling_max_sampling_interval_bytes=4)
        config.data_sources[0].config.heapprofd_config.process_cmdline[0] = "custom_heaps"
        recording = self.record_config(config).wait_active()
        process = self.patient([program("custom_heaps"), "200"])
        process.end()
        recording.finish()
        intervals = {dump.heap_name: dump.sampling_interval_bytes for dump in recording.dumps_of(process.pid)}
        self.assertEqual(len(intervals), 3)
        self.assertEqual(max(intervals.values()), 4, intervals)

    def test_fields_for_devices_are_kept_and_said(self):
        recording, _ = self.one_round(config_of(disable_fork_teardown="true", disable_vfork_detection="true",
                                                target_installed_by='"@system"'))
        kept = config_pb2.TraceConfig()
        kept.ParseFromString(next(p.trace_config for p in recording.trace.packet if p.HasField("trace_config")))
        heapprofd = kept.data_sources[0].config.heapprofd_config
        self.assertTrue(heapprofd.disable_fork_teardown and heapprofd.disable_vfork_detection)
        self.assertEqual(list(heapprofd.target_installed_by), ["@system"])
        for word in ("target_installed_by", "disable_fork_teardown"):
            self.assertIn(word, recording.stderr)

    def test_a_process_without_an_allocation_has_an_entry_with_the_reason(self):
        without = subprocess.Popen(["/bin/sleep", "1000"])
        self.addCleanup(without.communicate)
        self.addCleanup(without.kill)
        recording = self.record_config(config_of(without.pid)).wait_active().finish()
        (dump,) = recording.dumps_of(without.pid)
        self.assertEqual(len(dump.samples), 0)
        self.assertIn("called no allocation function", dump.reason)
        names = {p.pid: list(p.cmdline) for packet in recording.trace.packet for p in packet.process_tree.processes}
        self.assertEqual(names[without.pid], ["/bin/sleep", "1000"])

    def test_small_running_processes_can_be_left_out(self):
        patient = self.patient().wait_ready()
        for limit, expected in [(1 << 20, 0), (1, 1)]:
            recording = self.record_config(config_of(patient.pid, min_anonymous_memory_kb=limit)).wait_active()
            patient.tell("a")
            recording.finish()
            (dump,) = recording.dumps_of(patient.pid)
            self.assertEqual(min(len(dump.samples), 1), expected)
            self.assertEqual("min_anonymous_memory_kb" in dump.reason, not expected)

    def test_a_memory_guardrail_ends_the_recording(self):
        recording = self.record_config(config_of(max_heapprofd_memory_kb=1)).wait_active()
        patient = self.patient().wait_ready()
        patient.tell("a")
        recording.finish(stop=None)
        (dump,) = recording.dumps_of(patient.pid)
        self.assertTrue(dump.hit_guardrail)
        self.assertEqual(live_bytes(dump) // ROUND, 1)
        self.assertIn("guardrail", recording.stderr)
        self.assertEqual(patient.tell("a"), "kept")

    def test_a_time_guardrail_ends_the_recording(self):
        recording = self.record_config(config_of(max_heapprofd_cpu_secs=1)).wait_active()
        patient = self.patient().wait_ready()
        while recording.process.poll() is None:
            patient.tell("a")
            patient.tell("f")
        recording.finish(stop=None)
        self.assertTrue(recording.dumps_of(patient.pid)[-1].hit_guardrail)

    def test_a_full_file_ends_the_recording(self):
        config = config_of(continuous_dump_config="{ dump_interval_ms: 10 }")
        config.max_file_size_bytes = 1000
        recording = self.record_config(config).wait_active()
        patient = self.patient().wait_ready()
        patient.tell("a")
        recording.finish(stop=None)
        self.assertIn("max_file_size_bytes", recording.stderr)

    def test_two_sources_share_one_trace(self):
        config = config_of()
        config.data_sources.add().CopyFrom(config.data_sources[0])
        other = config.data_sources[1].config.heapprofd_config
        del other.process_cmdline[:]
        other.process_cmdline.append("known_stacks")
        recording = self.record_config(config).wait_active()
        patient = self.patient().wait_ready()
        patient.tell("a")
        second = self.patient([program("known_stacks")])
        second.end()
        recording.finish()
        self.assertEqual({p.pid for p in recording.pprofs}, {patient.pid, second.pid})
        Importer([p for p in recording.trace.packet
                  if p.WhichOneof("data") == "profile_packet" or p.HasField("interned_data")])

    def test_a_unique_name_is_given_once(self):
        config = config_of()
        config.unique_session_name = "only"
        first = self.record_config(config).wait_active()
        second = self.record_config(config).finish(None)
        self.assertEqual(second.exit_code, 2)
        self.assertIn("unique_session_name", second.stderr)
        first.finish()


class Dumps(ConfigTest):
    def test_continuous_dumps_keep_their_pace(self):
        interval = 50_000_000  # ns
        recording = self.record_config(config_of(
            continuous_dump_config="{ dump_phase_ms: 500 dump_interval_ms: 50 }")).wait_active()
        patient = self.patient().wait_ready()
        wait_for(lambda: patient.tell("a") and patient.tell("f") and
                 os.path.getsize(os.path.join(recording.directory, "raw-trace")) > 40_000, "no dumps")
        recording.finish()
        times = [d.timestamp for d in recording.dumps_of(patient.pid)][:-1]  # the last one is the end
        self.assertGreater(len(times), 5)
        # Each is late by what the machine takes, but the delays do not add up: most are in one third of
        # the interval, wherever that is.
        late = [(time - times[0]) % interval for time in times]
        together = max(sum((other - one) % interval < interval / 3 for other in late) for one in late)
        self.assertGreater(together, len(late) / 2, late)
        # Another program of this name may have run elsewhere on the machine.
        files = [p for p in recording.pprofs if p.pid == patient.pid]
        self.assertEqual(len(files), len(times) + 1)
        Importer([p for p in recording.trace.packet
                  if p.WhichOneof("data") == "profile_packet" or p.HasField("interned_data")])

    def test_the_maximum_and_the_ordinary_views_come_together(self):
        recording = self.record_config(config_of(dump_at_max="true")).wait_active()
        patient = self.patient().wait_ready()
        for letter in "aaf":
            patient.tell(letter)
        recording.finish()
        (dump,) = recording.dumps_of(patient.pid)
        self.assertGreaterEqual(sum(s.self_max for s in dump.samples), 2 * ROUND)
        self.assertLess(sum(s.self_max for s in dump.samples), 2 * ROUND + 100_000)
        self.assertEqual(sum(s.self_allocated for s in dump.samples), 0)
        self.assertGreaterEqual(sum(s.cumulative_allocated for s in dump.samples), 2 * ROUND)
        values = recording.pprofs[0].of("kept_block")
        self.assertEqual((values["max_space"], values["max_objects"]), (2 * ROUND, 2000))
        self.assertEqual((values["space"], values["alloc_space"]), (0, 2 * ROUND))
        self.assertEqual((dump.peak_low, dump.peak_high), (dump.peak_bytes, dump.peak_bytes))  # all is recorded
        self.assertIn(f"peak: {dump.peak_bytes} bytes, 95 % limits {dump.peak_bytes} and {dump.peak_bytes}",
                      recording.pprofs[0].comments)

    def test_a_program_of_our_own_is_dumped_by_signal_and_mark(self):
        started = Started(["/bin/sh", "-c", f"{program('patient')} 1 < /dev/null; {HEAP_PROFILE} mark half; "
                           f"kill -USR1 $PPID; {program('patient')} 2 < /dev/null"], ["-i", "1"])
        result = started.finish()
        self.assertEqual(result.exit_code, 0, result.stderr)
        dumps = [d for p in self.parse(result).packet for d in p.profile_packet.process_dumps]
        self.assertIn("half", {d.label for d in dumps})
        # The signal may come while the second program is at work.
        self.assertLessEqual({ROUND, 2 * ROUND}, {p.of("kept_block")["space"] for p in result.pprofs})

    def parse(self, result):
        import trace_pb2
        trace = trace_pb2.Trace()
        trace.ParseFromString(result.trace_bytes)
        return trace


class Memory(ConfigTest):
    def test_dumps_come_with_what_the_kernel_and_the_allocator_count(self):
        recording, (dump,) = self.one_round(config_of(malloc_info="true"), rounds=5)
        memory = [p.process_stats.processes[0] for p in recording.trace.packet if p.HasField("process_stats")][-1]
        self.assertGreater(memory.vm_rss_kb, 5 * ROUND / 1024)
        self.assertGreater(memory.rss_anon_kb, 5 * ROUND / 1024)
        self.assertLessEqual(memory.smr_pss_kb, memory.vm_rss_kb)

    def test_the_summary_tells_where_the_memory_is(self):
        result = run([program("patient"), "50"], ["-i", "1", "--malloc-info"])
        self.assertEqual(result.exit_code, 0, result.stderr)
        self.assertIn("Memory of the process, by glibc and the kernel", result.stderr)
        self.assertRegex(result.stderr, r"requested, live +47\.7 MiB")
        # 8 bytes of header for each of 50000 blocks of 1000 bytes.
        self.assertRegex(result.stderr, r"overhead and caches +3\d\d KiB")

    def test_that_no_allocator_has_answered_is_said(self):
        result = run(["/bin/sh", "-c", "kill -KILL $$"], ["-i", "1", "--malloc-info"])
        self.assertIn("cannot tell the allocator's own accounting: no process has answered; glibc 2.33 or later and jemalloc do",
                      result.stderr)

    def test_jemalloc_accounts_for_itself(self):
        library = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"
        if not os.path.exists(library):
            self.skipTest("no jemalloc here")
        with_jemalloc = f'LD_PRELOAD="$LD_PRELOAD:{library}" exec {program("patient")} 50'
        result = run(["/bin/sh", "-c", with_jemalloc], ["-i", "1", "--malloc-info"])
        self.assertIn("Memory of the process, by jemalloc and the kernel", result.stderr)


if __name__ == "__main__":
    unittest.main()
