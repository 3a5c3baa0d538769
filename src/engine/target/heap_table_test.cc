#include "engine/target/heap_table.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "profile/limits.h"

namespace heapprofd {
namespace {

class HeapTableTest : public testing::Test {
 protected:
  void SetUp() override { rules_->other_interval = 4096; }

  void Name(uint8_t id, const std::string& name) {
    memcpy(client_->heaps[id].name, name.data(), std::min(name.size(), kHeapNameSize));
    client_->heaps[id].is_set.store(1);
  }

  CustomHeap& Get(uint8_t id) { return table_.Get(id, *client_, *rules_); }

  std::vector<HeapDump> Snapshot() const { return table_.Snapshot(*client_, *rules_); }

  std::unique_ptr<ClientBlock> client_ = std::make_unique<ClientBlock>();
  std::unique_ptr<HeapRules> rules_ = std::make_unique<HeapRules>();
  HeapTable table_;
};

TEST_F(HeapTableTest, EachHeapHasItsOwnSums) {
  Name(1, "pool");
  Name(2, "arena");
  Get(1).Allocate({0x10, 100, 1, 70}, 5);
  Get(2).Allocate({0x10, 30, 1, 70}, 6);
  Get(2).Allocate({0x20, 5, 1, 71}, 7);
  Get(1).Free(0x10, {.now_ns = 1'000'005});
  EXPECT_EQ(table_.LiveBytes(), 35);
  const std::vector<HeapDump> dumps = Snapshot();
  ASSERT_EQ(dumps.size(), 2u);
  EXPECT_EQ(dumps[0].heap_name, "pool");
  EXPECT_EQ(dumps[0].callsites.at(70).allocated.bytes, 100);
  EXPECT_EQ(dumps[0].callsites.at(70).live().bytes, 0);
  EXPECT_EQ(dumps[0].peak_total.bytes, 100);
  EXPECT_EQ(dumps[0].peak.at(70).bytes, 100);
  EXPECT_EQ(dumps[1].callsites.at(70).live().bytes, 30);
  EXPECT_EQ(dumps[1].callsites.at(71).live().bytes, 5);
}

TEST_F(HeapTableTest, ShapesAreThoseOfTheHeapsCallsites) {
  Name(1, "pool");
  Name(2, "arena");
  Get(1).Allocate({0x10, 100, 1, 70}, 5);
  Get(2).Allocate({0x10, 30, 1, 71}, 6);
  Get(2).Allocate({0x20, 5, 1, 70}, 7);
  Get(2).Free(0x20, {.now_ns = 1'000'005});
  std::vector<HeapDump> dumps = Snapshot();
  EXPECT_EQ(table_.SnapshotShapes(2'000'000, dumps), 0u);
  ASSERT_EQ(dumps[0].shapes.size(), 3u);  // allocated, live, its age
  EXPECT_EQ(dumps[0].shapes[0].callsite, 70u);
  ASSERT_EQ(dumps[1].shapes.size(), 5u);
  EXPECT_EQ(dumps[1].shapes[1].callsite, 70u);
  EXPECT_EQ(dumps[1].shapes[1].kind, ShapeKind::kLifetime);
  EXPECT_EQ(dumps[1].shapes[1].log2, 19);
  EXPECT_EQ(dumps[1].shapes[2].callsite, 71u);
}

TEST_F(HeapTableTest, SlotsThatLieDoNotOverflowTheTotals) {
  Name(1, "pool");
  Get(1);
  for (const size_t i : {5u, 6u, 7u}) {
    client_->heap_slots[i].thread_pointer.store(HeapSlotKey(0x7f00, 1));
    client_->heap_slots[i].calls = UINT64_MAX;
    client_->heap_slots[i].granted = i == 6 ? 100 : UINT64_MAX;
    client_->heap_slots[i].bytes_left = i == 6 ? 1000 : 0;
  }
  const std::vector<HeapDump> dumps = Snapshot();
  EXPECT_EQ(dumps.at(0).exact_alloc_calls, uint64_t{1} << 53);
  EXPECT_EQ(dumps.at(0).exact_alloc_bytes, uint64_t{1} << 53);
}

TEST_F(HeapTableTest, TotalsAreThoseOfTheHeapsSlots) {
  Name(1, "pool");
  Get(1);
  client_->heap_slots[5].thread_pointer.store(HeapSlotKey(0x7f00, 1));
  client_->heap_slots[5].calls = 3;
  client_->heap_slots[5].granted = 1000;
  client_->heap_slots[5].bytes_left = 400;
  client_->heap_slots[9].thread_pointer.store(HeapSlotKey(0x7f80, 1));
  client_->heap_slots[9].calls = 1;
  client_->heap_slots[9].granted = 50;
  client_->heap_slots[10].thread_pointer.store(HeapSlotKey(0x7f80, 200));  // unknown heap
  client_->heap_slots[10].calls = 99;
  const std::vector<HeapDump> dumps = Snapshot();
  EXPECT_EQ(dumps.at(0).exact_alloc_calls, 4u);
  EXPECT_EQ(dumps.at(0).exact_alloc_bytes, 650u);
}

TEST_F(HeapTableTest, NoMoreIsLiveThanWasCounted) {
  Name(1, "pool");
  Name(2, "arena");
  Get(1).Allocate({0x10, 100, 4096, 70}, 5);  // stands for about 4146 bytes
  Get(2).Allocate({0x10, 30, 1, 70}, 6);
  client_->heap_slots[5].thread_pointer.store(HeapSlotKey(0x7f00, 1));
  client_->heap_slots[5].calls = 3;
  client_->heap_slots[5].granted = 250;
  const std::vector<HeapDump> dumps = Snapshot();
  EXPECT_EQ(dumps.at(0).possible_live, 250);
  EXPECT_EQ(dumps.at(0).peak_total.bytes, 250);
  EXPECT_EQ(dumps.at(0).peak_total.high, 250);
  EXPECT_EQ(dumps.at(1).peak_total.bytes, 30);
}

// What it has allocated since then is as little known as if there were no sample at all.
TEST_F(HeapTableTest, AnIntervalThatWasRaisedCountsBeforeTheNextSample) {
  rules_->max_interval = 1 << 20;
  Name(1, "pool");
  Get(1).Allocate({0x10, 100, 4096, 70}, 5);
  client_->heap_slots[5].thread_pointer.store(HeapSlotKey(0x7f00, 1));
  client_->heap_slots[5].calls = 5001;
  client_->heap_slots[5].granted = 500'100;
  rules_->interval_shift.store(8);
  const HeapDump dump = Snapshot().at(0);
  EXPECT_EQ(dump.original_sampling_interval, 4096u);
  EXPECT_EQ(dump.sampling_interval, 1u << 20);
  EXPECT_EQ(LiveTotal(dump).high, 500'100);
  rules_->interval_shift.store(40);
  EXPECT_EQ(Snapshot().at(0).sampling_interval, 1u << 20);
  rules_->max_interval = UINT64_MAX;  // as a target may write it
  rules_->interval_shift.store(UINT32_MAX);
  EXPECT_LE(Snapshot().at(0).sampling_interval, kMaxInterval);
}

TEST_F(HeapTableTest, AHeapWithoutSamplesIsThereNevertheless) {
  Name(3, "quiet");
  table_.FindPublished(*client_, *rules_);
  EXPECT_EQ(Snapshot().at(0).heap_name, "quiet");
}

TEST_F(HeapTableTest, HeapsThatTheSessionLeavesOutAreNamed) {
  rules_->other_interval = 0;
  Name(3, "left out");
  EXPECT_EQ(table_.FindPublished(*client_, *rules_),
            std::vector<std::string>{"left_out"});
  EXPECT_TRUE(Snapshot().empty());
}

TEST_F(HeapTableTest, HostileNamesBecomeHarmlessAndUnique) {
  Name(1, "../../etc/passwd");
  Name(2, "pool");
  Name(3, "pool");
  Name(4, "libc.malloc");
  Name(5, "");
  Name(6, std::string(64, 'x'));  // no terminating zero
  Name(7, "a b\n");
  EXPECT_EQ(Get(1).name(), "heap-1.._.._etc_passwd");
  EXPECT_EQ(Get(2).name(), "pool");
  EXPECT_EQ(Get(3).name(), "heap-3pool");
  EXPECT_EQ(Get(4).name(), "heap-4libc.malloc");
  EXPECT_EQ(Get(5).name(), "heap-5");
  EXPECT_EQ(Get(6).name(), std::string(63, 'x'));
  EXPECT_EQ(Get(7).name(), "a_b_");
}

}  // namespace
}  // namespace heapprofd
