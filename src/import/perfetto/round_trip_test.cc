// What TraceWriter writes is what the reader reads, dump after dump.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <random>

#include "import/perfetto/test_traces.h"
#include "trace/trace_writer.h"

namespace heapprofd {
namespace {

class RoundTripTest : public testing::Test {
 protected:
  RoundTripTest() {
    std::string pattern = "/tmp/round_trip_test_XXXXXX";
    directory_ = mkdtemp(pattern.data());
    profile_.process.pid = 7;
    profile_.process.start_ns = 5;
    profile_.mappings.push_back({});
    profile_.mappings[0].path = "/usr/lib/lib.so";
    profile_.mappings[0].build_id = "0123456789";
    for (uint32_t i = 0; i < kCallsites; ++i) {
      profile_.frames.push_back(
          {.mapping = 0,
           .rel_pc = 16 * i,
           .lines = {{"f" + std::to_string(i), "f" + std::to_string(i), "a.cc", i + 1}}});
      profile_.callsites.push_back({.parent = i == 0 ? kNoId : (i - 1) / 2, .frame = i});
    }
    profile_.heaps.emplace_back().heap_name = kMallocHeapName;
  }

  ~RoundTripTest() override { std::filesystem::remove_all(directory_); }

  TraceWriter Create() {
    Result<TraceFile> file = TraceFile::Create(directory_ + "/trace");
    EXPECT_TRUE(file.ok());
    return TraceWriter(std::move(file).value());
  }

  void Read() {
    ASSERT_TRUE(ReadTrace(directory_ + "/trace", test_.builder).ok());
    EXPECT_TRUE(TraceWarnings(test_.trace.stats).empty());
  }

  // Sums of the rows up to a dump, by the innermost function: bytes and objects.
  std::map<std::string, std::pair<int64_t, int64_t>> LiveAt(uint32_t dump) const {
    std::map<std::string, std::pair<int64_t, int64_t>> live;
    const AllocationTable& rows = test_.trace.allocations;
    for (size_t row = 0; row < rows.row_count(); ++row) {
      if (rows.dump[row] > dump)
        continue;
      const std::string stack = test_.Stack(rows.callsite[row]);
      auto& sums = live[stack.substr(stack.rfind(';') + 1)];
      sums.first += rows.size[row];
      sums.second += rows.count[row];
    }
    std::erase_if(live, [](const auto& entry) { return entry.second.first == 0; });
    return live;
  }

  static constexpr uint32_t kCallsites = 200;
  std::string directory_;
  TargetProfile profile_;
  TestTrace test_;
};

TEST_F(RoundTripTest, SumsOfRowsAreTheStateAtEachDump) {
  std::mt19937 random(7);  // the same events in every run
  TraceWriter writer = Create();
  ASSERT_TRUE(writer.WriteHeader("").ok());
  std::vector<std::map<std::string, std::pair<int64_t, int64_t>>> expected;
  HeapDump& dump = profile_.heaps[0];
  for (int i = 0; i < 5; ++i) {
    dump.start_ns = dump.end_ns;
    dump.end_ns += 1000;
    for (int event = 0; event < 100; ++event) {
      CallsiteTotals& totals =
          dump.callsites[static_cast<CallsiteId>(random() % kCallsites)];
      totals.allocated += {.bytes = 100, .count = 2};
      if (random() % 2 == 0)
        totals.freed += {.bytes = 100, .count = 2};
    }
    auto& live = expected.emplace_back();
    for (const auto& [id, totals] : dump.callsites) {
      if (totals.live().bytes != 0)
        live["f" + std::to_string(id)] = {std::llround(totals.live().bytes),
                                          std::llround(totals.live().count)};
    }
    ASSERT_TRUE(writer.WriteDump(profile_, 0, {}).ok());
  }
  ASSERT_TRUE(writer.WriteModuleSymbols(profile_, NamedModules::kWithBuildId).ok());
  ASSERT_TRUE(writer.Finish().ok());
  Read();
  ASSERT_EQ(test_.trace.dumps.size(), 5u);
  for (uint32_t i = 0; i < 5; ++i)
    EXPECT_EQ(LiveAt(i), expected[i]) << "dump " << i;
  const FrameTable& frames = test_.trace.frames;
  for (size_t row = 0; row < frames.row_count(); ++row) {
    ASSERT_NE(frames.symbol_set[row], kNoId);
    EXPECT_EQ(test_.trace.symbols.line[frames.symbol_set[row]],
              frames.rel_pc[row] / 16 + 1);
  }
}

TEST_F(RoundTripTest, ThreadsHaveTheirTotalsAndTheirLatestNames) {
  TraceWriter writer = Create();
  ASSERT_TRUE(writer.WriteHeader("").ok());
  HeapDump& dump = profile_.heaps[0];
  dump.end_ns = 1000;
  // More than fit into a packet.
  constexpr uint32_t kThreads = 10'000;
  profile_.threads.resize(kThreads);
  dump.threads.resize(kThreads);
  for (uint32_t id = 0; id < kThreads; ++id) {
    profile_.threads[id] = {.tid = 7 + id, .name = "worker_with_a_name"};
    dump.threads[id] = {.allocated = {.bytes = 100.0 * id, .count = 1.0 * id},
                        .freed = {.bytes = 60.0 * id, .bytes_variance = 9}};
  }
  profile_.threads[0] = {};
  dump.threads[0].allocated = {.bytes = 5, .count = 1};
  ASSERT_TRUE(writer.WriteDump(profile_, 0, {}).ok());
  profile_.threads[3].name = "renamed";
  dump.threads[2] = {};
  dump.end_ns = 2000;
  ASSERT_TRUE(writer.WriteDump(profile_, 0, {}).ok());
  ASSERT_TRUE(writer.Finish().ok());
  Read();
  const std::vector<ThreadTotals>& rows = test_.trace.thread_totals;
  ASSERT_EQ(rows.size(), 2 * kThreads - 1);
  EXPECT_EQ(rows[0].utid, kNoId);
  EXPECT_EQ(rows[0].alloc_size, 5);
  for (uint32_t id = 1; id < kThreads; ++id) {
    const ImportedThread& thread = test_.trace.threads[rows[id].utid];
    ASSERT_EQ(thread.tid, 7 + id);
    ASSERT_EQ(thread.is_main, false);
    ASSERT_EQ(test_.trace.Text(thread.name), id == 3 ? "renamed" : "worker_with_a_name");
    ASSERT_EQ(rows[id].dump, 0u);
    ASSERT_EQ(rows[id].alloc_size, 100 * id);
    ASSERT_EQ(rows[id].alloc_count, id);
    ASSERT_EQ(rows[id].free_size, 60 * id);
    ASSERT_EQ(rows[id].live_size_error, 0);
  }
  EXPECT_EQ(rows[kThreads].dump, 1u);
  EXPECT_EQ(rows[kThreads + 2].utid, rows[3].utid);
}

TEST_F(RoundTripTest, ShapesOfBlocksAreThoseOfTheirStacks) {
  TraceWriter writer = Create();
  ASSERT_TRUE(writer.WriteHeader("").ok());
  HeapDump& dump = profile_.heaps[0];
  dump.end_ns = 1000;
  profile_.threads = {{}, {.tid = 7, .name = "a"}, {.tid = 8, .name = "b"}};
  dump.threads.assign(3, {.allocated = {.bytes = 1, .count = 1}, .freed = {}});
  for (CallsiteId id = 0; id < kCallsites; ++id) {
    dump.callsites[id].allocated = {.bytes = 1, .count = 1};
    for (uint8_t log2 = 0; log2 < 57; ++log2)  // more than fit into a packet
      dump.shapes.push_back(
          {.callsite = id,
           .kind = static_cast<ShapeKind>(log2 % 5),
           .log2 = log2,
           .thread = log2 % 3u,
           .estimate = {.bytes = 7.0 * id, .count = 3, .bytes_variance = 16}});
  }
  dump.shapes.push_back({.callsite = kNoId, .kind = ShapeKind::kTemporary});
  ASSERT_TRUE(writer.WriteDump(profile_, 0, {}).ok());
  ASSERT_TRUE(writer.Finish().ok());
  Read();
  const ShapeTable& rows = test_.trace.shapes;
  ASSERT_EQ(rows.row_count(), dump.shapes.size());
  EXPECT_EQ(rows.callsite[rows.row_count() - 1], kNoId);
  EXPECT_EQ(test_.trace.stats.Get(StatId::kStackprofileInvalidCallstackId), 0);
  for (size_t row = 0; row + 1 < rows.row_count(); ++row) {
    const ShapeRow& want = dump.shapes[row];
    const std::string stack = test_.Stack(rows.callsite[row]);
    ASSERT_EQ(stack.substr(stack.rfind(';') + 1), "f" + std::to_string(want.callsite));
    ASSERT_EQ(rows.kind[row], static_cast<uint8_t>(want.kind));
    ASSERT_EQ(rows.log2[row], want.log2);
    const uint32_t utid = rows.utid[row];
    if (want.thread == kUnknownThread)
      ASSERT_EQ(utid, kNoId);
    else
      ASSERT_EQ(test_.trace.threads[utid].tid, 6 + want.thread);
    ASSERT_EQ(rows.size[row], 7 * want.callsite);
    ASSERT_EQ(rows.count[row], 3);
    ASSERT_EQ(rows.size_error[row], 4);
    ASSERT_EQ(rows.count_error[row], 0);
  }
}

TEST_F(RoundTripTest, LiveBlocksKeepTheirAddressesAndStacks) {
  TraceWriter writer = Create();
  ASSERT_TRUE(writer.WriteHeader("").ok());
  HeapDump& dump = profile_.heaps[0];
  dump.end_ns = 1000;
  for (CallsiteId id = 0; id < kCallsites; ++id)
    dump.callsites[id].allocated = {.bytes = 1, .count = 1};
  constexpr uint64_t kBlocks = 200'000;  // more than fit into a packet
  for (uint64_t i = 0; i < kBlocks; ++i)
    dump.blocks.push_back({.address = 0x7f00'0000'0000 + i * i,
                           .size = i * 1001,
                           .callsite = static_cast<CallsiteId>(i % kCallsites)});
  dump.blocks.push_back({.address = UINT64_MAX, .size = UINT64_MAX, .callsite = 0});
  ASSERT_TRUE(writer.WriteDump(profile_, 0, {}).ok());
  ASSERT_TRUE(writer.Finish().ok());
  Read();
  const LiveBlockTable& rows = test_.trace.live_blocks;
  ASSERT_EQ(rows.row_count(), dump.blocks.size());
  for (size_t row = 0; row < rows.row_count(); ++row) {
    ASSERT_EQ(rows.address[row], dump.blocks[row].address);
    ASSERT_EQ(rows.size[row], dump.blocks[row].size);
    ASSERT_EQ(rows.dump[row], 0u);
    ASSERT_EQ(test_.trace.callsites.frame[rows.callsite[row]],
              test_.trace.callsites.frame[rows.callsite[row % kCallsites]]);
  }
  for (CallsiteId id = 0; id < kCallsites; ++id) {
    const std::string stack = test_.Stack(rows.callsite[id]);
    EXPECT_EQ(stack.substr(stack.rfind(';') + 1), "f" + std::to_string(id));
  }
}

TEST_F(RoundTripTest, APeakTakesBackWhatTheOneBeforeHeld) {
  TraceWriter writer = Create();
  ASSERT_TRUE(writer.WriteHeader("").ok());
  HeapDump& dump = profile_.heaps[0];
  const DumpFlags flags{.mode = DumpMode::kPeak};
  dump.end_ns = dump.peak_ns = 1000;
  dump.peak = {{1, {.bytes = 50, .count = 1}}, {2, {.bytes = 10, .count = 1}}};
  ASSERT_TRUE(writer.WriteDump(profile_, 0, flags).ok());
  dump.end_ns = dump.peak_ns = 2000;
  dump.peak = {{1, {.bytes = 100, .count = 2}}};
  ASSERT_TRUE(writer.WriteDump(profile_, 0, flags).ok());
  ASSERT_TRUE(writer.Finish().ok());
  Read();
  using Live = std::map<std::string, std::pair<int64_t, int64_t>>;
  EXPECT_EQ(LiveAt(0), (Live{{"f1", {50, 1}}, {"f2", {10, 1}}}));
  EXPECT_EQ(LiveAt(1), (Live{{"f1", {100, 2}}}));
}

}  // namespace
}  // namespace heapprofd
