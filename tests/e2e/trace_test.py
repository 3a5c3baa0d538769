"""raw-trace obeys the rules that Perfetto's importer needs; what breaks one is dropped there in silence."""

import json
import unittest

import trace_pb2
from profile_run import program, run

MONOTONIC_COARSE = 4
BOOTTIME = 6
MAX_PACKET = 500_000  # bytes


def unknown_fields(message):
    """Yields the numbers of fields that the schema does not know, at any depth."""
    for field in message.UnknownFields():
        yield field.field_number
    for descriptor, value in message.ListFields():
        if descriptor.type == descriptor.TYPE_MESSAGE:
            for child in value if descriptor.label == descriptor.LABEL_REPEATED else [value]:
                yield from unknown_fields(child)


class Importer:
    """The importer's view of the profile sequence: interned data first, then whole series of packets."""

    def __init__(self, packets):
        self.tables = {name: {} for name in
                       ("function_names", "frames", "callstacks", "build_ids", "mapping_paths", "mappings")}
        self.series = []  # finished ones: lists of ProcessHeapSamples
        pending = []
        next_index = 0
        is_valid = False
        for packet in packets:
            assert packet.trusted_packet_sequence_id != 0
            is_valid = is_valid or packet.sequence_flags & 1 != 0
            assert is_valid, "interned data before INCREMENTAL_STATE_CLEARED"
            for name, table in self.tables.items():
                for entry in getattr(packet.interned_data, name):
                    assert entry.iid not in table, (name, entry.iid)
                    table[entry.iid] = entry
            if packet.WhichOneof("data") != "profile_packet":
                continue
            assert packet.profile_packet.index == next_index
            next_index += 1
            pending += packet.profile_packet.process_dumps
            if not packet.profile_packet.continued:
                self.series.append(pending)
                pending = []
        assert not pending, "the last series is not finished"

    def stack(self, iid):
        """Function names, outermost first."""
        frames = [self.tables["frames"][frame] for frame in self.tables["callstacks"][iid].frame_ids]
        assert frames
        for frame in frames:
            if frame.mapping_id != 0:
                mapping = self.tables["mappings"][frame.mapping_id]
                assert mapping.build_id in self.tables["build_ids"]
                assert all(id in self.tables["mapping_paths"] for id in mapping.path_string_ids)
        return [self.tables["function_names"][frame.function_name_id].str.decode() for frame in frames]


def load(result):
    trace = trace_pb2.Trace()
    trace.ParseFromString(result.trace_bytes)
    return trace


class TraceFile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.result = run([program("forker")], ["-i", "1"])
        cls.trace = load(cls.result)
        cls.profile = Importer([p for p in cls.trace.packet
                                if p.WhichOneof("data") == "profile_packet" or p.HasField("interned_data")])

    def test_no_field_is_unknown(self):
        self.assertEqual(list(unknown_fields(self.trace)), [])

    def test_the_clocks_that_date_the_dumps_come_first(self):
        first = self.trace.packet[0]
        self.assertEqual(first.WhichOneof("data"), "clock_snapshot")
        self.assertLessEqual({MONOTONIC_COARSE, BOOTTIME}, {clock.clock_id for clock in first.clock_snapshot.clocks})

    def test_packets_are_small(self):
        self.assertLess(max(packet.ByteSize() for packet in self.trace.packet), MAX_PACKET)

    def test_every_process_has_its_header_and_name(self):
        dumps = {dump.pid: dump for series in self.profile.series for dump in series}
        named = {process.pid for packet in self.trace.packet for process in packet.process_tree.processes
                 if process.cmdline}
        self.assertEqual(len(dumps), 4)
        self.assertEqual(set(dumps), named)
        for dump in dumps.values():
            self.assertEqual(dump.heap_name, "libc.malloc")
            self.assertEqual(dump.orig_sampling_interval_bytes, 1)
            self.assertTrue(dump.from_startup and dump.disconnected)
            self.assertLess(dump.start_timestamp, dump.timestamp)
            self.assertEqual(dump.quality.samples, dump.stats.heap_samples)
            times = dump.stats.unwinding_time_us.buckets
            self.assertEqual([b.upper_limit for b in times], [2 ** i for i in range(19)] + [0])
            self.assertTrue(times[-1].max_bucket)
            self.assertEqual(sum(b.count for b in times), dump.quality.copied_samples)

    def test_values_are_those_of_the_pprof_files(self):
        for pprof in self.result.pprofs:
            samples = [s for series in self.profile.series for dump in series if dump.pid == pprof.pid
                       for s in dump.samples]
            self.assertEqual(sum(s.self_allocated for s in samples), pprof.total("alloc_space"))
            self.assertEqual(sum(s.self_allocated - s.self_freed for s in samples), pprof.total("space"))
            self.assertEqual(sum(s.alloc_count for s in samples), pprof.total("alloc_objects"))
            self.assertTrue(all(s.self_freed <= s.self_allocated for s in samples))

    def test_stacks_run_from_the_outermost_frame_inward(self):
        found = [self.profile.stack(s.callstack_id) for series in self.profile.series for dump in series
                 for s in dump.samples]
        parent = next(stack for stack in found if "parent_block" in stack)
        self.assertEqual(parent[-3:], ["main", "parent_block", "calloc"])
        self.assertEqual(parent[0], "_start")

    def test_symbols_follow_the_frames_that_they_describe(self):
        frames = {(frame.rel_pc) for frame in self.profile.tables["frames"].values()}
        seen_profile = False
        functions = set()
        for packet in self.trace.packet:
            seen_profile |= packet.WhichOneof("data") == "profile_packet"
            if packet.WhichOneof("data") == "module_symbols":
                self.assertTrue(seen_profile)
                for address in packet.module_symbols.address_symbols:
                    self.assertIn(address.address, frames)
                    functions |= {(line.function_name, line.source_file_name.rsplit("/")[-1]) for line in address.lines}
        self.assertIn(("parent_block", "forker.c"), functions)

    def test_standard_errors_come_with_estimates_only(self):
        sampled = load(run([program("known_stacks"), "20"]))
        samples = [s for p in sampled.packet for d in p.profile_packet.process_dumps for s in d.samples]
        self.assertTrue(any(s.alloc_count_error > 0 for s in samples))
        exact = [s for series in self.profile.series for dump in series for s in dump.samples]
        self.assertTrue(all(s.alloc_count_error == 0 for s in exact))

    def test_exact_totals_are_in_the_trace(self):
        result = run([program("known_stacks")])
        truth = json.loads(result.stdout)
        dump = [d for p in load(result).packet for d in p.profile_packet.process_dumps][0]
        self.assertGreaterEqual(dump.exact_alloc_calls, sum(t[0] for t in truth.values()))
        self.assertLess(dump.exact_alloc_calls, sum(t[0] for t in truth.values()) + 20)
        self.assertGreaterEqual(dump.exact_alloc_bytes, sum(t[1] for t in truth.values()))

    def test_a_program_without_samples_still_has_its_header(self):
        result = run(["/bin/true"], ["-i", "100000000"])
        dumps = [d for p in load(result).packet for d in p.profile_packet.process_dumps]
        self.assertEqual(len(dumps), 1)
        self.assertEqual(dumps[0].heap_name, "libc.malloc")


if __name__ == "__main__":
    unittest.main()
