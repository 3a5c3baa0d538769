// What traces mean, by the fixtures in tests/data/traces.
#include "import/perfetto/trace_reader.h"

#include <gtest/gtest.h>

#include "import/perfetto/test_traces.h"

namespace heapprofd {
namespace {

TEST(TraceReaderTest, RowsAreWhatChangedSinceTheLastDump) {
  const auto test = ReadFixture("two_dumps");
  EXPECT_EQ(test->Allocations(),
            "2000 7 libc.malloc main;_ZN4demo5parseEi 10 1000\n"
            "2000 7 libc.malloc main;_ZN4demo5parseEi -2 -200\n"
            "2000 7 libc.malloc main;render 1 500\n"
            "3000 7 libc.malloc main;_ZN4demo5parseEi 2 700\n"
            "3000 7 libc.malloc main;render -1 -500\n");
}

TEST(TraceReaderTest, PacketsOfOneDumpAreOneDumpWithTheHeaderOfTheLast) {
  const auto test = ReadFixture("two_dumps");
  ASSERT_EQ(test->trace.dumps.size(), 2u);
  const ImportedDump& first = test->trace.dumps[0];
  EXPECT_EQ(first.ts, 2000);
  EXPECT_EQ(first.start_ts, 1100);
  EXPECT_EQ(first.first_allocation, 0u);
  EXPECT_EQ(first.allocation_count, 3u);
  EXPECT_EQ(first.sampling_interval, 4096u);
  EXPECT_TRUE(first.from_startup);
  EXPECT_FALSE(first.disconnected);
  EXPECT_TRUE(first.is_finalized);
  EXPECT_EQ(first.quality, kNoId);
  const ImportedDump& second = test->trace.dumps[1];
  EXPECT_EQ(second.first_allocation, 3u);
  EXPECT_TRUE(second.disconnected);
  EXPECT_EQ(second.stats.heap_samples, 14u);
  const TraceStats& stats = test->trace.stats;
  EXPECT_EQ(stats.Get(StatId::kHeapprofdSamplingIntervalAdjusted, 7), 4096);
  EXPECT_EQ(stats.Get(StatId::kHeapprofdUnwindSamples, 7), 14);
  EXPECT_EQ(stats.Get(StatId::kHeapprofdUnwindTimeUs, 7), 350);
  EXPECT_EQ(stats.Get(StatId::kHeapprofdLastProfileTimestamp, 7), 3000);
  EXPECT_EQ(stats.Get(StatId::kHeapprofdMissingPacket), 0);
}

TEST(TraceReaderTest, MappingsFramesAndCallsitesHaveTheirColumns) {
  const auto test = ReadFixture("two_dumps");
  const ImportedTrace& trace = test->trace;
  ASSERT_EQ(trace.mappings.size(), 1u);
  EXPECT_EQ(trace.Text(trace.mappings[0].name), "/usr/libdemo.so");
  EXPECT_EQ(trace.Text(trace.mappings[0].build_id), "abcd01");
  EXPECT_EQ(trace.mappings[0].start, 0x10000u);
  EXPECT_EQ(trace.mappings[0].end, 0x20000u);
  EXPECT_EQ(trace.mappings[0].exact_offset, 0x1000u);
  EXPECT_EQ(trace.mappings[0].load_bias, 0x400u);
  ASSERT_EQ(trace.frames.row_count(), 3u);
  EXPECT_EQ(trace.frames.rel_pc[1], 0x1502u);
  EXPECT_EQ(trace.frames.symbol_set[1], kNoId);
  ASSERT_EQ(trace.callsites.row_count(), 3u);
  EXPECT_EQ(trace.callsites.parent[0], kNoId);
  EXPECT_EQ(trace.callsites.parent[2], 0u);
  EXPECT_EQ(trace.callsites.depth[0], 0u);
  EXPECT_EQ(trace.callsites.depth[2], 1u);
}

TEST(TraceReaderTest, ProcessesAndThreadsAreNamed) {
  const auto test = ReadFixture("two_dumps");
  const ImportedTrace& trace = test->trace;
  const ImportedProcess& process = trace.processes[trace.dumps[0].upid];
  EXPECT_EQ(process.pid, 7);
  EXPECT_EQ(trace.Text(process.name), "/usr/bin/demo");
  EXPECT_EQ(trace.Text(process.cmdline), "/usr/bin/demo --fast");
  EXPECT_EQ(process.uid, 1000);
  EXPECT_EQ(trace.processes[process.parent_upid].pid, 1);
  ASSERT_EQ(trace.threads.size(), 2u);
  EXPECT_EQ(trace.Text(trace.threads[1].name), "worker");
  EXPECT_EQ(trace.threads[1].upid, trace.dumps[0].upid);
}

TEST(TraceReaderTest, Android10HasItsTablesInTheProfilePacket) {
  const auto test = ReadFixture("android_10");
  EXPECT_EQ(test->Allocations(),
            "2000 9 unknown malloc 4 64\n2000 9 unknown malloc -1 -16\n");
  EXPECT_EQ(test->trace.Text(test->trace.mappings[0].name), "/system/libc.so");
  EXPECT_EQ(test->trace.Text(test->trace.mappings[0].build_id), "0102");
}

TEST(TraceReaderTest, HeapsThatShareAStackDoNotShareFigures) {
  const auto test = ReadFixture("two_heaps");
  EXPECT_EQ(test->Allocations(),
            "2000 7 libc.malloc main;_ZN4demo5parseEi 1 100\n"
            "2000 7 pool main;_ZN4demo5parseEi 3 30\n"
            "3000 7 libc.malloc main;_ZN4demo5parseEi 1 50\n"
            "3000 7 pool main;_ZN4demo5parseEi -3 -30\n");
  EXPECT_EQ(test->trace.stats.Sum(StatId::kHeapprofdMalformedPacket), 0);
}

TEST(TraceReaderTest, PeaksMayFallFromDumpToDump) {
  const auto test = ReadFixture("dump_at_max");
  EXPECT_EQ(test->Allocations(),
            "2000 7 libc.malloc main;_ZN4demo5parseEi 6 1000\n"
            "2000 7 libc.malloc main;render 1 90\n"
            "3000 7 libc.malloc main;_ZN4demo5parseEi 2 500\n"
            "3000 7 libc.malloc main;render 0 -50\n"
            "3000 8 libc.malloc main;_ZN4demo5parseEi 0 5\n");
  EXPECT_TRUE(test->trace.dumps[0].is_peak);
}

TEST(TraceReaderTest, WhatRefersToNothingIsLeftOutAndCounted) {
  const auto test = ReadFixture("missing_and_duplicate_ids");
  EXPECT_EQ(test->Allocations(),
            "2000 7 libc.malloc main;_ZN4demo5parseEi 1 1\n"
            "2000 7 libc.malloc main;render 1 2\n"
            "2000 7 libc.malloc  1 16\n");  // a frame without its name has its address
  const TraceStats& stats = test->trace.stats;
  EXPECT_EQ(stats.Get(StatId::kStackprofileInvalidStringId), 3);
  EXPECT_EQ(stats.Get(StatId::kStackprofileInvalidMappingId), 1);
  EXPECT_EQ(stats.Get(StatId::kStackprofileInvalidFrameId), 1);
  EXPECT_EQ(stats.Get(StatId::kStackprofileEmptyCallstack), 1);
  EXPECT_EQ(stats.Get(StatId::kStackprofileInvalidCallstackId), 3);
  EXPECT_EQ(stats.Get(StatId::kInternedDataDuplicateId), 2);
  EXPECT_EQ(TraceWarnings(test->trace.stats).size(), 6u);
}

TEST(TraceReaderTest, InternedDataCountOnlyWhileTheStateIsKnown) {
  const auto test = ReadFixture("incremental_state");
  EXPECT_EQ(test->Allocations(),
            "2000 7 libc.malloc main;_ZN4demo5parseEi 1 100\n"
            "3000 7 libc.malloc fresh 7 70\n");
  const TraceStats& stats = test->trace.stats;
  EXPECT_EQ(stats.Get(StatId::kInternedDataSkippedIncrementalStateInvalid), 2);
  EXPECT_EQ(stats.Get(StatId::kInternedDataMissingSequenceId), 1);
  EXPECT_EQ(stats.Get(StatId::kIncrementalStateClearedMissingSequenceId), 1);
  EXPECT_EQ(stats.Get(StatId::kHeapprofdMissingPacket), 0);
}

TEST(TraceReaderTest, FlagsAreInTheDumpsAndInTheStats) {
  const auto test = ReadFixture("flags");
  const std::vector<ImportedDump>& dumps = test->trace.dumps;
  ASSERT_EQ(dumps.size(), 4u);
  EXPECT_TRUE(dumps[0].rejected_concurrent);
  EXPECT_EQ(dumps[0].ts, 900);  // it has no time: 0 of CLOCK_MONOTONIC_COARSE
  EXPECT_TRUE(dumps[1].buffer_overran && dumps[1].buffer_corrupted &&
              dumps[1].hit_guardrail);
  EXPECT_TRUE(dumps[2].disconnected);
  EXPECT_EQ(dumps[2].client_error, 2u);
  EXPECT_FALSE(dumps[3].is_finalized);
  EXPECT_EQ(dumps[3].allocation_count, 1u);  // what arrived is kept
  const TraceStats& stats = test->trace.stats;
  EXPECT_EQ(stats.Get(StatId::kHeapprofdRejectedConcurrent, 3), 1);
  EXPECT_EQ(stats.Get(StatId::kHeapprofdBufferOverran, 4), 1);
  EXPECT_EQ(stats.Get(StatId::kHeapprofdBufferCorrupted, 4), 1);
  EXPECT_EQ(stats.Get(StatId::kHeapprofdHitGuardrail, 4), 1);
  EXPECT_EQ(stats.Get(StatId::kHeapprofdClientError, 5), 2);
  EXPECT_EQ(stats.Get(StatId::kHeapprofdClientDisconnected, 5), 1);
  EXPECT_EQ(stats.Get(StatId::kHeapprofdNonFinalizedProfile), 1);
  EXPECT_EQ(stats.Get(StatId::kHeapprofdMissingPacket), 1);  // 1 to 6
}

TEST(TraceReaderTest, FiguresThatFallAreLeftOutAndNewIdsCountFromZero) {
  const auto test = ReadFixture("counters");
  EXPECT_EQ(test->Allocations(),
            "2000 7 libc.malloc main;_ZN4demo5parseEi 2 100\n"
            "2000 7 libc.malloc main;_ZN4demo5parseEi -2 -100\n"
            "2000 7 libc.malloc main;render 5 50\n"
            "3000 7 libc.malloc main;_ZN4demo5parseEi 1 30\n"
            "4000 7 libc.malloc main;render 1 10\n");
  EXPECT_EQ(test->trace.stats.Sum(StatId::kHeapprofdMalformedPacket), 1);
}

TEST(TraceReaderTest, SymbolsMayStandAnywhereAndTheLastOnesCount) {
  const auto test = ReadFixture("symbols");
  const ImportedTrace& trace = test->trace;
  const uint32_t outer = trace.frames.symbol_set[0];
  ASSERT_NE(outer, kNoId);
  EXPECT_EQ(trace.Text(trace.symbols.name[outer]), "main");
  EXPECT_EQ(trace.Text(trace.symbols.source_file[outer]), "main.cc");
  EXPECT_EQ(trace.symbols.line[outer], 5u);
  EXPECT_EQ(trace.symbols.EndOf(outer), outer + 1);
  const uint32_t inner = trace.frames.symbol_set[1];
  ASSERT_NE(inner, kNoId);
  ASSERT_EQ(trace.symbols.EndOf(inner), inner + 2);
  EXPECT_EQ(trace.Text(trace.symbols.name[inner]), "inner");
  EXPECT_EQ(trace.Text(trace.symbols.name[inner + 1]), "_ZN4demo5parseEi");
  EXPECT_EQ(trace.symbols.line[inner + 1], 40u);
  EXPECT_EQ(trace.frames.symbol_set[2], kNoId);  // another build id
  EXPECT_EQ(trace.stats.Get(StatId::kUnknownSymbolsModule), 2);
}

TEST(TraceReaderTest, JavaFramesGetTheirNamesBack) {
  const auto test = ReadFixture("java");
  const ImportedTrace& trace = test->trace;
  EXPECT_EQ(trace.Text(trace.frames.deobfuscated_name[0]), "com.example.Store.read");
  EXPECT_EQ(trace.Text(trace.frames.type[0]), "interpreted");
  const uint32_t set = trace.frames.symbol_set[0];
  ASSERT_EQ(trace.symbols.EndOf(set), set + 2);  // inlined first
  EXPECT_EQ(trace.Text(trace.symbols.name[set]), "com.example.Log.write");
  EXPECT_EQ(trace.symbols.line[set], 50u);
  EXPECT_EQ(trace.Text(trace.symbols.name[set + 1]), "com.example.Store.read");
  EXPECT_EQ(trace.symbols.line[set + 1], 20u);
  EXPECT_EQ(trace.Text(trace.symbols.source_file[set + 1]), "SourceFile");
  EXPECT_EQ(trace.Text(trace.frames.deobfuscated_name[1]),
            "[DEDUPED] com.example.Store.abort | com.example.Store.close");
  EXPECT_EQ(trace.Text(trace.frames.type[1]), "special");
  EXPECT_EQ(trace.frames.deobfuscated_name[2], kNoId);  // another package's
}

TEST(TraceReaderTest, ArtReportsNoFrees) {
  const auto test = ReadFixture("java");
  EXPECT_EQ(test->Allocations(),
            "2000 7 com.android.art [DEDUPED] a.b.d;a.b.c;a.b.c 5 100\n");
}

TEST(TraceReaderTest, MemoryOfProcessesIsRead) {
  const auto test = ReadFixture("system");
  const ImportedTrace& trace = test->trace;
  ASSERT_EQ(trace.counters.size(), 6u);
  EXPECT_EQ(trace.counters[0].ts, 1500);
  EXPECT_EQ(trace.Text(trace.counters[0].name), "mem.rss");
  EXPECT_EQ(trace.counters[0].value, 100 * 1024);
  EXPECT_EQ(trace.counters[2].value, -5);
  EXPECT_EQ(trace.counters[4].ts, 1200);  // MONOTONIC_COARSE 300
  EXPECT_EQ(trace.stats.Get(StatId::kClockSyncFailure), 1);
  ASSERT_EQ(trace.smaps.size(), 7u);
  EXPECT_EQ(trace.Text(trace.smaps[0].path), "[heap]");
  EXPECT_EQ(trace.smaps[0].pss_kb, 121);
  EXPECT_EQ(trace.smaps[0].rss_kb, std::nullopt);
  EXPECT_EQ(trace.Text(trace.smaps[2].path), "[stack]");
  EXPECT_EQ(trace.smaps[2].aggregate_count, 1);
  EXPECT_EQ(trace.smaps[2].pss_kb, 6);
  EXPECT_EQ(trace.Text(trace.smaps[5].path), "x");
  EXPECT_EQ(trace.smaps[5].rss_kb, 3);
  EXPECT_EQ(trace.stats.Get(StatId::kSmapsParserErrors), 1);
}

TEST(TraceReaderTest, TheMachineIsInTheMetadata) {
  const auto test = ReadFixture("system");
  const ImportedTrace& trace = test->trace;
  std::string text;
  for (const ImportedMetadata& row : trace.metadata)
    text += std::string(trace.Text(row.name)) + "=" +
            (row.int_value ? std::to_string(*row.int_value)
                           : std::string(trace.Text(row.str_value))) +
            "\n";
  EXPECT_EQ(text,
            "system_name=Linux\nsystem_machine=x86_64\nandroid_build_fingerprint=x/y\n"
            "num_cpus=8\ntrace_uuid=01234567-89ab-cdef-1122-334455667788\n");
  ASSERT_EQ(trace.packages.size(), 1u);
  EXPECT_EQ(trace.packages[0].uid, 10123);
  EXPECT_EQ(trace.packages[0].version_code, 42);
  EXPECT_EQ(trace.stats.Get(StatId::kTracedBufChunksOverwritten, 0), 3);
  EXPECT_EQ(trace.stats.Get(StatId::kTracedBufPacketLoss, 1), 2);
  EXPECT_EQ(trace.stats.Get(StatId::kTracedFinalFlushFailed), 1);
  EXPECT_EQ(trace.stats.Get(StatId::kUnsupportedPacket, 74), 1);
}

TEST(TraceReaderTest, WithoutClocksADumpKeepsItsTime) {
  const auto test = ReadFixture("no_clocks");
  EXPECT_EQ(test->Allocations(), "1100 7 libc.malloc main;_ZN4demo5parseEi 1 100\n");
  EXPECT_EQ(test->trace.stats.Get(StatId::kClockSyncFailure), 1);
}

TEST(TraceReaderTest, AnExecMakesAnotherProcessOfThePid) {
  const auto test = ReadFixture("exec");
  const ImportedTrace& trace = test->trace;
  ASSERT_EQ(trace.dumps.size(), 2u);
  EXPECT_NE(trace.dumps[0].upid, trace.dumps[1].upid);
  EXPECT_EQ(trace.Text(trace.processes[trace.dumps[0].upid].name), "sh");
  EXPECT_EQ(trace.Text(trace.processes[trace.dumps[1].upid].name), "demo");
}

TEST(TraceReaderTest, OurOwnFieldsAreRead) {
  const auto test = ReadFixture("exec");
  const ImportedDump& dump = test->trace.dumps[0];
  EXPECT_EQ(dump.exact_alloc_calls, 11u);
  EXPECT_EQ(dump.exact_alloc_bytes, 12u);
  EXPECT_EQ(dump.peak_bytes, 13u);
  EXPECT_EQ(dump.peak_ts, 1100);
  EXPECT_EQ(dump.live_low, 0u);
  EXPECT_EQ(dump.live_high, 21u);
  EXPECT_EQ(dump.peak_low, 9u);
  EXPECT_EQ(dump.peak_high, 22u);
  EXPECT_EQ(test->trace.dumps[1].peak_high, std::nullopt);  // not told
  ASSERT_NE(dump.quality, kNoId);
  EXPECT_EQ(test->trace.qualities[dump.quality].samples, 5u);
  EXPECT_EQ(test->trace.qualities[dump.quality].threads_without_slot, 1u);
  ASSERT_EQ(dump.estimate_count, 1u);
  EXPECT_EQ(test->trace.estimates.live_bytes_error[0], 2.5);
  EXPECT_EQ(test->trace.estimates.peak_bytes[0], 90);
  EXPECT_EQ(test->trace.dumps[1].estimate_count, 0u);
}

TEST(TraceReaderTest, ASecondFileHasOtherProcesses) {
  const auto test = ReadFixture("two_dumps");
  const std::string bytes = FixtureBytes("two_dumps");
  MemorySource source(bytes);
  ASSERT_TRUE(ReadTrace(source, "second", test->builder).ok());
  ASSERT_EQ(test->trace.dumps.size(), 4u);
  EXPECT_NE(test->trace.dumps[0].upid, test->trace.dumps[2].upid);
  EXPECT_EQ(test->trace.dumps[2].ts, 2000);
  EXPECT_EQ(test->trace.callsites.row_count(), 3u);  // the same stacks
}

TEST(TraceReaderTest, ARecordingOfOursThatHasNoEndIsCutBetweenTwoPackets) {
  const auto damage_of = [](const std::string& bytes) {
    TestTrace test;
    MemorySource source(bytes);
    const Result<ReadReport> report = ReadTrace(source, "x", test.builder);
    return report.ok() ? report.value().damage : report.status().message();
  };
  const std::string ours = FixtureBytes("exec");
  EXPECT_EQ(damage_of(ours), "the end of its recording is missing");
  EXPECT_EQ(damage_of(ours + FixtureBytes("recording_end")), "");
  EXPECT_EQ(damage_of(ours + "\x0a\x7f\x08"), "it ends in the middle of a packet");
  EXPECT_EQ(damage_of(FixtureBytes("two_dumps")), "") << "another recorder's";
}

TEST(TraceReaderTest, WhatTheRecorderKnewBelongsToTheProgramOfItsProcess) {
  const auto test = ReadFixture("recording_end");
  const ImportedTrace& trace = test->trace;
  const auto process_of = [&](const char* name) {
    for (const ImportedProcess& process : trace.processes) {
      if (process.name != kNoId && trace.Text(process.name) == name)
        return process;
    }
    return ImportedProcess();
  };
  ASSERT_EQ(trace.process_ends.size(), 3u);
  EXPECT_EQ(process_of("/bin/next").end, 0u);
  EXPECT_EQ(process_of("/bin/prog").end, 1u);
  EXPECT_EQ(trace.process_ends[0].history, (std::vector<double>{1, 2, 1.5}));
  EXPECT_EQ(trace.process_ends[1].rss_kib, 10u);
  ASSERT_TRUE(trace.recording_end.has_value());
  EXPECT_EQ(trace.recording_end->seconds, 1.5);
  ASSERT_EQ(trace.recording_end->unrecorded.size(), 2u);
  EXPECT_EQ(trace.recording_end->unrecorded[1].reason, UnrecordedReason::kNotLoaded);
  EXPECT_EQ(trace.trace_config, "\x08\x01");
}

}  // namespace
}  // namespace heapprofd
