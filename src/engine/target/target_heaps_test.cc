#include "engine/target/target_heaps.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "engine/target/published_config.h"

namespace heapprofd {
namespace {

class TargetHeapsTest : public testing::Test {
 protected:
  void NameHeap(uint8_t id, const char* name) {
    memcpy(memory_->client().heaps[id].name, name, strlen(name));
    memory_->client().heaps[id].is_set.store(1);
  }

  void Allocate(uint8_t heap_id, uint64_t address, uint64_t size) {
    heaps_.Allocate(heap_id,
                    {.address = address, .size = size, .interval = 1, .callsite = 1}, 1);
  }

  static FreeRecord FreeOf(uint8_t heap_id, uint64_t address, bool is_realloc = false) {
    return {.address = address,
            .tsc = 0,
            .thread_id = 1,
            .heap_id = heap_id,
            .is_realloc = is_realloc ? uint8_t{1} : uint8_t{0},
            .reserved = 0};
  }

  std::unique_ptr<SharedMemory> memory_ = SharedMemory::Create(64 * 1024).value();
  PublishedConfig published_{SessionConfig(), &memory_->engine()};
  TargetHeaps heaps_{memory_.get(), &published_};
};

TEST_F(TargetHeapsTest, HeapsAreApart) {
  NameHeap(9, "pool");
  Allocate(0, 0x10, 100);
  Allocate(9, 0x10, 30);
  memory_->client().ring.slot_count.store(1);
  memory_->client().slots[0].calls = 5;
  memory_->client().slots[0].granted = 500;
  EXPECT_EQ(heaps_.live_samples(), 2u);
  heaps_.Free(FreeOf(0, 0x10), {});
  EXPECT_EQ(heaps_.live_samples(), 1u);
  const std::vector<HeapDump> dumps = heaps_.Snapshot();
  ASSERT_EQ(dumps.size(), 2u);
  EXPECT_EQ(dumps[0].heap_name, kMallocHeapName);
  EXPECT_EQ(dumps[0].exact_alloc_calls, 5u);
  EXPECT_EQ(dumps[0].callsites.begin()->second.live().bytes, 0);
  EXPECT_EQ(dumps[1].heap_name, "pool");
  EXPECT_EQ(dumps[1].callsites.begin()->second.live().bytes, 30);
}

TEST_F(TargetHeapsTest, AnEmptyMallocIsToldOnlyWhenThereIsNothingElse) {
  ASSERT_EQ(heaps_.Snapshot().size(), 1u);
  EXPECT_EQ(heaps_.Snapshot()[0].heap_name, kMallocHeapName);
  Allocate(9, 0x10, 30);
  ASSERT_EQ(heaps_.Snapshot().size(), 1u);
  EXPECT_NE(heaps_.Snapshot()[0].heap_name, kMallocHeapName);
}

TEST_F(TargetHeapsTest, AFailedReallocIsUndoneForMallocAndIsAFreeForTheOthers) {
  Allocate(0, 0x10, 100);
  heaps_.Free(FreeOf(0, 0x10, /*is_realloc=*/true), {});
  EXPECT_EQ(heaps_.live_samples(), 0u);
  heaps_.UndoFree(FreeOf(0, 0x10), 2);
  EXPECT_EQ(heaps_.live_samples(), 1u);
  Allocate(9, 0x20, 30);
  heaps_.UndoFree(FreeOf(9, 0x20), 2);
  EXPECT_EQ(heaps_.live_samples(), 1u);
}

TEST_F(TargetHeapsTest, AFreeInAHeapThatNobodyKnowsIsNothing) {
  heaps_.Free(FreeOf(200, 0x10), {});
  heaps_.UndoFree(FreeOf(200, 0x10), 1);
  EXPECT_EQ(heaps_.GrowthBytes(200), 0u);
  EXPECT_EQ(heaps_.live_samples(), 0u);
}

TEST_F(TargetHeapsTest, LiveBytesAreNoMoreThanTheExactTotalsAllow) {
  Allocate(0, 0x10, 100);
  memory_->client().ring.slot_count.store(1);
  memory_->client().slots[0].calls = 1;
  memory_->client().slots[0].granted = 60;
  EXPECT_LE(heaps_.LiveBytes(), 100);
  EXPECT_GE(heaps_.LiveBytes(), 60);
}

TEST_F(TargetHeapsTest, WhatTheNextSampleTakesIsKnownBefore) {
  const size_t growth = heaps_.GrowthBytes(0);
  const size_t before = heaps_.bytes();
  EXPECT_GT(growth, 0u);
  Allocate(0, 0x10, 100);
  EXPECT_GE(heaps_.bytes(), before + growth);
  EXPECT_EQ(heaps_.GrowthBytes(0), 0u);
}

}  // namespace
}  // namespace heapprofd
