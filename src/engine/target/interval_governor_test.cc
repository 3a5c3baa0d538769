#include "engine/target/interval_governor.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "base/clock.h"

namespace heapprofd {
namespace {

constexpr uint64_t kRingSize = 64 * 1024;

class IntervalGovernorTest : public testing::Test {
 protected:
  void Create() {
    memory_ = SharedMemory::Create(kRingSize).value();
    published_.emplace(config_, &memory_->engine());
    governor_ =
        std::make_unique<IntervalGovernor>(config_, &*published_, memory_.get(), &clock_);
    clock_.Update();
  }

  uint64_t interval() const { return memory_->engine().control.interval.load(); }

  uint32_t shift() const { return memory_->engine().heap_rules.interval_shift.load(); }

  void LoseRecords() { memory_->client().ring.lost_records.fetch_add(1); }

  SessionConfig config_;
  TscClock clock_;
  std::unique_ptr<SharedMemory> memory_;
  std::optional<PublishedConfig> published_;
  std::unique_ptr<IntervalGovernor> governor_;
};

TEST_F(IntervalGovernorTest, WhereWritersWaitTheIntervalStays) {
  Create();
  LoseRecords();
  governor_->Look(kRingSize);
  EXPECT_EQ(interval(), config_.interval_bytes);
  EXPECT_EQ(shift(), 0u);
}

TEST_F(IntervalGovernorTest, WhereRecordsAreLostItDoublesOnceInAWhile) {
  config_.when_full = WhenFull::kDrop;
  Create();
  governor_->Look(0);
  EXPECT_EQ(interval(), config_.interval_bytes);
  LoseRecords();
  governor_->Look(0);
  EXPECT_EQ(interval(), 2 * config_.interval_bytes);
  EXPECT_EQ(shift(), 1u);
  LoseRecords();
  governor_->Look(0);  // by the same clock
  EXPECT_EQ(interval(), 2 * config_.interval_bytes);
}

TEST_F(IntervalGovernorTest, ARingThatIsNearlyFullIsEnoughWhereRecordsAreDropped) {
  config_.when_full = WhenFull::kDrop;
  Create();
  governor_->Look(kRingSize / 4 * 3);
  EXPECT_EQ(interval(), config_.interval_bytes);
  governor_->Look(kRingSize / 4 * 3 + 8);
  EXPECT_EQ(interval(), 2 * config_.interval_bytes);
}

TEST_F(IntervalGovernorTest, AThresholdIsOfTheFreeBytes) {
  config_.adaptive_threshold_bytes = 4096;
  Create();
  governor_->Look(kRingSize - 4096);
  EXPECT_EQ(interval(), config_.interval_bytes);
  governor_->Look(UINT64_MAX);  // more than there is: the ring's word
  EXPECT_EQ(interval(), 2 * config_.interval_bytes);
}

// The block may be mapped by a target that writes there.
TEST_F(IntervalGovernorTest, WhatStandsInTheSharedMemoryIsNotReadBack) {
  config_.adaptive_threshold_bytes = 4096;
  Create();
  memory_->engine().control.interval.store(0);
  memory_->engine().heap_rules.interval_shift.store(UINT32_MAX - 1);
  memory_->engine().heap_rules.max_interval = 0;
  governor_->Look(kRingSize);
  EXPECT_EQ(published_->interval(), 2 * config_.interval_bytes);
  EXPECT_EQ(interval(), 2 * config_.interval_bytes);
  EXPECT_EQ(shift(), 1u);
}

TEST_F(IntervalGovernorTest, TheIntervalHasALimit) {
  config_.adaptive_threshold_bytes = 4096;
  config_.adaptive_max_interval_bytes = config_.interval_bytes;
  Create();
  governor_->Look(kRingSize);
  EXPECT_EQ(interval(), config_.interval_bytes);
}

}  // namespace
}  // namespace heapprofd
