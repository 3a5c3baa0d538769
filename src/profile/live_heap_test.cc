// The live heap against a model that keeps every sample and copies all sums at every new
// maximum.
#include "profile/live_heap.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <random>
#include <tuple>
#include <vector>

namespace heapprofd {
namespace {

// With an interval of one byte every sample stands for itself: all sums are exact.
constexpr uint64_t kExact = 1;

struct Model {
  struct Sample {
    uint64_t size;
    CallsiteId callsite;
    ThreadId thread;
  };

  std::map<uint64_t, Sample> live;
  std::map<uint32_t, std::pair<uint64_t, Sample>> pending;
  std::map<CallsiteId, double> allocated;
  std::map<CallsiteId, double> freed;
  std::map<ThreadId, double> thread_allocated;
  std::map<ThreadId, double> thread_freed;
  std::map<CallsiteId, double> peak;
  double peak_total = 0;
  uint64_t peak_ns = 0;

  void NotePeak(uint64_t now) {
    std::map<CallsiteId, double> sums;
    double total = 0;
    for (const auto& entry : live) {
      sums[entry.second.callsite] += static_cast<double>(entry.second.size);
      total += static_cast<double>(entry.second.size);
    }
    if (total <= peak_total)
      return;
    peak_total = total;
    peak = sums;
    peak_ns = now;
  }

  void Allocate(const SampledAllocation& allocation, uint64_t now) {
    Free(allocation.address);
    live[allocation.address] = {allocation.size, allocation.callsite, allocation.thread};
    allocated[allocation.callsite] += static_cast<double>(allocation.size);
    thread_allocated[allocation.thread] += static_cast<double>(allocation.size);
    NotePeak(now);
  }

  void Free(uint64_t address) {
    const auto found = live.find(address);
    if (found == live.end())
      return;
    freed[found->second.callsite] += static_cast<double>(found->second.size);
    thread_freed[found->second.thread] += static_cast<double>(found->second.size);
    live.erase(found);
  }

  void FreeForRealloc(uint64_t address, uint32_t thread) {
    pending.erase(thread);
    if (const auto found = live.find(address); found != live.end())
      pending[thread] = {address, found->second};
    Free(address);
  }

  void UndoRealloc(uint64_t address, uint32_t thread, uint64_t now) {
    const auto found = pending.find(thread);
    if (found == pending.end() || found->second.first != address)
      return;
    const Sample sample = found->second.second;
    pending.erase(found);
    if (live.contains(address))
      return;
    live[address] = sample;
    freed[sample.callsite] -= static_cast<double>(sample.size);
    thread_freed[sample.thread] -= static_cast<double>(sample.size);
    NotePeak(now);
  }
};

void ExpectEqual(const LiveHeap& heap, const Model& model) {
  HeapDump dump;
  heap.Snapshot(&dump);
  ASSERT_EQ(heap.live_samples(), model.live.size());
  ASSERT_EQ(dump.callsites.size(), model.allocated.size());
  for (const auto& [callsite, bytes] : model.allocated) {
    ASSERT_EQ(dump.callsites[callsite].allocated.bytes, bytes);
    const auto freed = model.freed.find(callsite);
    ASSERT_EQ(dump.callsites[callsite].freed.bytes,
              freed != model.freed.end() ? freed->second : 0);
  }
  for (const auto& [thread, bytes] : model.thread_allocated) {
    ASSERT_EQ(dump.threads.at(thread).allocated.bytes, bytes);
    const auto freed = model.thread_freed.find(thread);
    ASSERT_EQ(dump.threads.at(thread).freed.bytes,
              freed != model.thread_freed.end() ? freed->second : 0);
  }
  ASSERT_EQ(dump.peak_total.bytes, model.peak_total);
  ASSERT_EQ(dump.peak_ns, model.peak_ns);
  ASSERT_EQ(dump.peak.size(), model.peak.size());
  for (const auto& [callsite, bytes] : model.peak)
    ASSERT_EQ(dump.peak[callsite].bytes, bytes) << callsite;
}

TEST(LiveHeapTest, RandomUseBehavesLikeTheModel) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    LiveHeap heap;
    Model model;
    std::mt19937_64 random(seed);
    for (uint64_t now = 1; now <= 8'000; ++now) {
      const uint64_t address = 16 * (1 + random() % 60);
      const auto thread = static_cast<uint32_t>(random() % 3);
      // Waves, so that there are many maxima and long times without one.
      const uint64_t action = random() % 10 + (now / 500 % 2 == 0 ? 0 : 3);
      if (action < 6) {
        const uint64_t size = 1 + random() % 1000;
        const auto callsite = static_cast<CallsiteId>(random() % 12);
        const SampledAllocation allocation{address, size, kExact, callsite, thread};
        heap.Allocate(allocation, now);
        model.Allocate(allocation, now);
      } else if (action < 9) {
        heap.Free(address);
        model.Free(address);
      } else if (action < 11) {
        heap.FreeForRealloc(address, thread);
        model.FreeForRealloc(address, thread);
      } else {
        heap.UndoRealloc(address, thread, now);
        model.UndoRealloc(address, thread, now);
      }
      if (now % 7 == 0) {
        ASSERT_NO_FATAL_FAILURE(ExpectEqual(heap, model)) << seed << " " << now;
      }
    }
  }
}

TEST(LiveHeapTest, AnEmptyHeapHasNoPeak) {
  HeapDump dump;
  LiveHeap().Snapshot(&dump);
  EXPECT_TRUE(dump.callsites.empty());
  EXPECT_TRUE(dump.peak.empty());
  EXPECT_EQ(dump.peak_ns, 0u);
}

TEST(LiveHeapTest, WhereNothingWasAllocatedNothingIsLive) {
  HeapDump dump;
  dump.sampling_interval = 4096;
  LiveHeap().Snapshot(&dump);
  EXPECT_EQ(dump.possible_live, 0);
  EXPECT_EQ(dump.peak_total.high, 0);
}

TEST(LiveHeapTest, WhatWasNotCountedHasNoLimit) {
  LiveHeap heap;
  heap.Allocate({0x10, 100, 4096, 0}, 1);
  HeapDump dump;
  dump.sampling_interval = 4096;
  heap.Snapshot(&dump);
  EXPECT_EQ(dump.possible_live, std::numeric_limits<double>::infinity());
}

TEST(LiveHeapTest, AReusedAddressCountsTheOldBlockAsFreed) {
  LiveHeap heap;
  heap.Allocate({0x10, 100, kExact, 0}, 1);
  heap.Allocate({0x10, 30, kExact, 1}, 2);
  HeapDump dump;
  heap.Snapshot(&dump);
  EXPECT_EQ(dump.callsites[0].live().bytes, 0);
  EXPECT_EQ(dump.callsites[1].live().bytes, 30);
  EXPECT_EQ(heap.total().live().bytes, 30);
  EXPECT_EQ(heap.total().allocated().bytes, 130);
  EXPECT_EQ(dump.peak_total.bytes, 100);
}

TEST(LiveHeapTest, AFailedReallocLeavesEverythingAsItWas) {
  LiveHeap heap;
  heap.Allocate({0x10, 100, kExact, 0}, 1);
  heap.FreeForRealloc(0x10, 7);
  EXPECT_EQ(heap.total().live().bytes, 0);
  heap.UndoRealloc(0x10, 7, 2);
  EXPECT_EQ(heap.total().live().bytes, 100);
  HeapDump dump;
  heap.Snapshot(&dump);
  EXPECT_EQ(dump.peak_ns, 1u);
  heap.UndoRealloc(0x10, 7, 3);  // only once
  EXPECT_EQ(heap.total().live().bytes, 100);
}

TEST(LiveHeapTest, ABlockThatComesBackMayMakeANewPeak) {
  LiveHeap heap;
  heap.Allocate({0x10, 100, kExact, 0}, 1);
  heap.FreeForRealloc(0x10, 7);
  heap.Allocate({0x20, 60, kExact, 1}, 2);  // another thread, meanwhile
  heap.UndoRealloc(0x10, 7, 3);
  HeapDump dump;
  heap.Snapshot(&dump);
  EXPECT_EQ(dump.peak_total.bytes, 160);
  EXPECT_EQ(dump.peak_ns, 3u);
}

TEST(LiveHeapTest, ABlockOfAnEarlierReallocDoesNotComeBack) {
  LiveHeap heap;
  heap.Allocate({0x10, 100, kExact, 0}, 1);
  heap.FreeForRealloc(0x10, 7);
  heap.FreeForRealloc(0x10, 7);  // reused by a block that was not sampled
  heap.UndoRealloc(0x10, 7, 2);
  EXPECT_EQ(heap.total().live().bytes, 0);
}

TEST(LiveHeapTest, ThreadIdsOfALyingTargetTakeBoundedMemory) {
  LiveHeap heap;
  for (uint32_t thread = 0; thread < 200'000; ++thread) {
    heap.Allocate({0x10, 1, kExact, 0}, thread);
    heap.FreeForRealloc(0x10, thread);
  }
  EXPECT_EQ(heap.live_samples(), 0u);
  heap.UndoRealloc(0x10, 0, 1);  // forgotten
  EXPECT_EQ(heap.live_samples(), 0u);
}

TEST(LiveHeapTest, SampledAllocationsCountWithTheirWeight) {
  LiveHeap heap;
  heap.Allocate({0x10, 2048, 4096, 3}, 1);
  HeapDump dump;
  heap.Snapshot(&dump);
  ASSERT_EQ(dump.callsites.size(), 1u);
  EXPECT_NEAR(dump.callsites[3].allocated.bytes, 5204.97988, 1e-4);
  EXPECT_NEAR(dump.callsites[3].allocated.count, 2.54149408, 1e-7);
}

// A process has ten times as many callers as callsites with samples.
TEST(LiveHeapTest, CallsitesWithSamplesTakeMemoryAndNoOthers) {
  LiveHeap heap(1);
  const size_t before = heap.bytes();
  constexpr CallsiteId kHigh = 10'000'000;
  heap.Allocate({.address = 16, .size = 1, .callsite = kHigh}, 0);
  EXPECT_LE(heap.bytes() - before, size_t{32} << 10);
  constexpr CallsiteId kCallsites = 1000;
  for (CallsiteId id = 0; id < kCallsites; ++id)
    heap.Allocate({.address = 16 * (id + 2), .size = 1, .callsite = id}, 0);
  EXPECT_EQ(heap.callsite_count(), kCallsites + 1);
  EXPECT_GE(heap.bytes() - before,
            kCallsites * (sizeof(CallsiteTotals) + sizeof(Estimate)));
}

TEST(LiveHeapTest, ADumpIsInTheOrderOfCallsites) {
  LiveHeap heap(1);
  for (const CallsiteId id : {7u, 3u, 5u, 0u})
    heap.Allocate({.address = 16 * (id + 1), .size = id + 1, .callsite = id}, 0);
  EXPECT_TRUE(heap.HasCallsite(5));
  EXPECT_FALSE(heap.HasCallsite(4));
  HeapDump dump;
  heap.Snapshot(&dump);
  heap.SnapshotShapes(1, &dump);
  std::vector<std::pair<CallsiteId, double>> totals;
  for (const auto& [id, total] : dump.callsites)
    totals.emplace_back(id, total.allocated.bytes);
  EXPECT_EQ(totals,
            (std::vector<std::pair<CallsiteId, double>>{{0, 1}, {3, 4}, {5, 6}, {7, 8}}));
  EXPECT_EQ(dump.peak.size(), 4u);
  std::vector<CallsiteId> of_shapes;
  for (const ShapeRow& row : dump.shapes) {
    if (row.kind == ShapeKind::kAllocatedSize)
      of_shapes.push_back(row.callsite);
  }
  EXPECT_EQ(of_shapes, (std::vector<CallsiteId>{0, 3, 5, 7}));
}

TEST(LiveHeapTest, RowsOfADumpTakeWhatTheyNeed) {
  LiveHeap heap(1);
  constexpr CallsiteId kCallsites = 1000;
  for (CallsiteId id = 0; id < kCallsites; ++id)
    heap.Allocate({.address = 16 * (id + 1), .size = 1, .callsite = 3 * id}, 0);
  HeapDump dump;
  heap.Snapshot(&dump);
  using Row = CallsiteRows<CallsiteTotals>::Row;
  EXPECT_EQ(dump.callsites.size(), kCallsites);
  EXPECT_EQ(dump.callsites.bytes(), kCallsites * sizeof(Row));
}

// The share of one kind of rows: callsite, power of two, count.
std::vector<std::tuple<CallsiteId, int, double>> ShapesOf(const LiveHeap& heap,
                                                          uint64_t now_ns,
                                                          ShapeKind kind) {
  HeapDump dump;
  heap.SnapshotShapes(now_ns, &dump);
  std::vector<std::tuple<CallsiteId, int, double>> found;
  for (const ShapeRow& row : dump.shapes) {
    if (row.kind == kind)
      found.emplace_back(row.callsite, row.log2, row.estimate.count);
  }
  return found;
}

using ShapeRows = std::vector<std::tuple<CallsiteId, int, double>>;

constexpr uint64_t kBegin = 1'000'000'000;  // ns

TEST(LiveHeapShapesTest, LifetimesAndAgesAreCounted) {
  LiveHeap heap;
  for (uint64_t address = 1; address <= 4; ++address)
    heap.Allocate(
        {.address = address, .size = 100, .interval = kExact, .callsite = 3, .thread = 1},
        kBegin);
  heap.Free(1, {.thread = 1, .now_ns = kBegin + 2'000'000});
  heap.Free(2, {.thread = 1, .now_ns = kBegin + 5'000'000'000});
  const uint64_t end = kBegin + 10'000'000'000;
  EXPECT_EQ(ShapesOf(heap, end, ShapeKind::kAllocatedSize), (ShapeRows{{3, 6, 4}}));
  EXPECT_EQ(ShapesOf(heap, end, ShapeKind::kLifetime),
            (ShapeRows{{3, 20, 1}, {3, 32, 1}}));
  EXPECT_EQ(ShapesOf(heap, end, ShapeKind::kLiveSize), (ShapeRows{{3, 6, 2}}));
  EXPECT_EQ(ShapesOf(heap, end, ShapeKind::kAge), (ShapeRows{{3, 33, 2}}));
  EXPECT_EQ(ShapesOf(heap, end, ShapeKind::kTemporary), ShapeRows());
}

TEST(LiveHeapShapesTest, TemporaryIsWhatItsThreadFreesSoon) {
  LiveHeap heap;
  for (uint64_t address = 1; address <= 4; ++address)
    heap.Allocate(
        {.address = address, .size = 100, .interval = kExact, .callsite = 0, .thread = 1},
        kBegin);
  heap.Free(1, {.thread = 1, .now_ns = kBegin + kTemporaryNs - 1000});
  heap.Free(2, {.thread = 1, .now_ns = kBegin + kTemporaryNs + 1000});
  heap.Free(3, {.thread = 2, .now_ns = kBegin + 1000});
  heap.Free(4, {.thread = kUnknownThread, .now_ns = kBegin + 1000});
  EXPECT_EQ(ShapesOf(heap, kBegin, ShapeKind::kTemporary), (ShapeRows{{0, 0, 1}}));
}

TEST(LiveHeapShapesTest, AReallocThatFailsEndsNothing) {
  LiveHeap heap;
  heap.Allocate({.address = 1, .size = 100, .interval = kExact, .thread = 1}, kBegin);
  heap.FreeForRealloc(1, 77, {.thread = 1, .now_ns = kBegin + 1000});
  heap.UndoRealloc(1, 77, kBegin + 2000);
  EXPECT_EQ(ShapesOf(heap, kBegin + 3000, ShapeKind::kTemporary), ShapeRows());
  EXPECT_EQ(ShapesOf(heap, kBegin + 3000, ShapeKind::kLifetime), ShapeRows());
  EXPECT_EQ(ShapesOf(heap, kBegin + 3000, ShapeKind::kAge), (ShapeRows{{0, 11, 1}}));
}

TEST(LiveHeapShapesTest, EveryLimitOfASampleIsKept) {
  LiveHeap heap;
  const uint64_t late = uint64_t{1} << 54;  // half a year after the machine's start
  const SampledAllocation largest{.address = 1,
                                  .size = uint64_t{1} << 56,
                                  .interval = uint64_t{1} << 40,
                                  .callsite = 8'100'000,
                                  .thread = 16'383};
  heap.Allocate(largest, late);
  EXPECT_EQ(ShapesOf(heap, late + 1'000'000, ShapeKind::kLiveSize),
            (ShapeRows{{8'100'000, 56, 1}}));
  EXPECT_EQ(ShapesOf(heap, late + 1'100'000, ShapeKind::kAge),
            (ShapeRows{{8'100'000, 20, 1}}));
  heap.Free(1, {.thread = 16'383, .now_ns = late + 1000});
  EXPECT_EQ(ShapesOf(heap, late, ShapeKind::kTemporary), (ShapeRows{{8'100'000, 0, 1}}));
  HeapDump dump;
  heap.Snapshot(&dump);
  EXPECT_EQ(dump.threads[16'383].freed.bytes, 0x1p56);
  EXPECT_EQ(dump.callsites.at(8'100'000).freed.count, 1);
}

TEST(LiveHeapShapesTest, ABlockThatIsYoungerThanTheDumpIsNew) {
  LiveHeap heap;
  heap.Allocate({.address = 1, .size = 1, .interval = kExact}, kBegin);
  EXPECT_EQ(ShapesOf(heap, kBegin - 5000, ShapeKind::kAge), (ShapeRows{{0, 0, 1}}));
}

TEST(LiveHeapTest, TheLargestLiveBlocksAreListedByAddress) {
  LiveHeap heap;
  for (uint64_t i = 1; i <= 1000; ++i)
    heap.Allocate({.address = (1001 - i) * 4096,
                   .size = 10 * i,
                   .interval = 1,
                   .callsite = static_cast<CallsiteId>(i % 7)},
                  i);
  heap.Free(1 * 4096);  // the largest
  for (const size_t most : {1u, 3u, 10u, 498u, 998u}) {
    HeapDump dump;
    EXPECT_EQ(heap.SnapshotBlocks(most, &dump), 999 - most);
    ASSERT_EQ(dump.blocks.size(), most);
    for (size_t i = 0; i < most; ++i) {
      const uint64_t number = 999 - i;
      EXPECT_EQ(dump.blocks[i].address, (1001 - number) * 4096);
      EXPECT_EQ(dump.blocks[i].size, 10 * number);
      EXPECT_EQ(dump.blocks[i].callsite, number % 7);
    }
  }
  HeapDump dump;
  EXPECT_EQ(heap.SnapshotBlocks(5000, &dump), 0u);
  EXPECT_EQ(dump.blocks.size(), 999u);
}

TEST(LiveHeapTest, OfBlocksOfOneSizeAnyAreListed) {
  LiveHeap heap;
  for (uint64_t i = 1; i <= 1000; ++i)
    heap.Allocate({.address = i * 64, .size = 64, .interval = 1}, i);
  HeapDump dump;
  EXPECT_EQ(heap.SnapshotBlocks(100, &dump), 900u);
  EXPECT_EQ(dump.blocks.size(), 100u);
}

}  // namespace
}  // namespace heapprofd
