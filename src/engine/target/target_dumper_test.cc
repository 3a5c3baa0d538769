#include "engine/target/target_dumper.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/target/published_config.h"

namespace heapprofd {
namespace {

constexpr uint64_t kStartNs = 1000;

class TargetDumperTest : public testing::Test {
 protected:
  static TargetProfile NewProfile() {
    TargetProfile profile;
    profile.process.start_ns = kStartNs;
    return profile;
  }

  RingHeader& ring() { return memory_->client().ring; }

  TargetProfile profile_ = NewProfile();
  ModuleCache modules_;
  TscClock clock_;
  AddressSpace code_{getpid(), &modules_, &profile_.mappings};
  std::unique_ptr<SharedMemory> memory_ = SharedMemory::Create(64 * 1024).value();
  PublishedConfig published_{SessionConfig(), &memory_->engine()};
  TargetHeaps heaps_{memory_.get(), &published_};
  RingDrain drain_{memory_.get(), getpid(), &clock_};
  FollowedChildren children_{/*is_wanted=*/true, &profile_.forked};
  TargetDumper dumper_{{.profile = &profile_,
                        .memory = memory_.get(),
                        .heaps = &heaps_,
                        .ring = &drain_,
                        .code = &code_,
                        .children = &children_}};
  TargetDumper listing_dumper_{{.profile = &profile_,
                                .memory = memory_.get(),
                                .heaps = &heaps_,
                                .ring = &drain_,
                                .code = &code_,
                                .children = &children_,
                                .lists_blocks = true}};
};

TEST_F(TargetDumperTest, EachDumpBeginsWhereTheOneBeforeEnded) {
  dumper_.UpdateAt(2000);
  ASSERT_EQ(profile_.heaps.size(), 1u);
  EXPECT_EQ(profile_.heaps[0].start_ns, kStartNs);
  EXPECT_EQ(profile_.heaps[0].end_ns, 2000u);
  const uint64_t before = MonotonicNs();
  dumper_.Update();
  EXPECT_EQ(profile_.heaps[0].start_ns, 2000u);
  EXPECT_GE(profile_.heaps[0].end_ns, before);
}

TEST_F(TargetDumperTest, WhatTheClientSaysOfItselfIsTakenOver) {
  ring().lost_records.store(7);
  ring().lost_samples.store(3);
  ring().threads_without_slot.store(2);
  ring().unseen_opens.deepbind.store(3);
  ring().unseen_opens.namespaces.store(4);
  ring().lacks_malloc.store(1);
  ring().counted_children.store(4);
  ring().client_error.store(static_cast<uint32_t>(ClientError::kBlockTimeout));
  dumper_.Update();
  EXPECT_EQ(profile_.quality.lost_records, 7u);
  EXPECT_EQ(profile_.quality.lost_samples, 3u);
  EXPECT_EQ(profile_.quality.threads_without_slot, 2u);
  EXPECT_EQ(profile_.quality.deepbind_opens, 3u);
  EXPECT_EQ(profile_.quality.namespace_opens, 4u);
  EXPECT_FALSE(profile_.hooks_malloc);
  EXPECT_EQ(profile_.forked.count, 4u);
  EXPECT_EQ(profile_.client_fault, ClientFault::kHitTimeout);
}

// By the same process as a forked child, before it could be recorded.
TEST_F(TargetDumperTest, WhatWasCountedAndCouldNotBeSampledIsNotComplete) {
  profile_.from_startup = true;
  dumper_.Update();
  EXPECT_TRUE(profile_.from_startup);
  ring().slot_count.store(1);
  memory_->client().slots[0].calls = 3;
  memory_->client().slots[0].granted = 9000;
  ring().unsampled_calls.store(2);
  ring().unsampled_bytes.store(6000);
  dumper_.Update();
  EXPECT_FALSE(profile_.from_startup);
  EXPECT_EQ(profile_.quality.unsampled_calls, 2u);
  EXPECT_EQ(profile_.quality.unsampled_bytes, 6000u);
  EXPECT_EQ(profile_.heaps[0].unsampled_bytes, 6000);
  EXPECT_GE(profile_.heaps[0].peak_total.high, 6000);
  ring().unsampled_bytes.store(UINT64_MAX);
  dumper_.Update();
  EXPECT_EQ(profile_.heaps[0].unsampled_bytes, 9000);
}

TEST_F(TargetDumperTest, OfMoreThanAMillionLiveBlocksTheLargestAreListed) {
  constexpr uint64_t kMost = 1'000'000;
  constexpr uint64_t kBeyond = 5;
  for (uint64_t i = 1; i <= kMost + kBeyond; ++i)
    heaps_.Allocate(0, {.address = 16 * i, .size = i, .interval = 1}, i);
  dumper_.Finish();
  EXPECT_TRUE(profile_.heaps[0].blocks.empty()) << "nobody has asked";
  EXPECT_EQ(profile_.quality.unlisted_blocks, 0u);
  listing_dumper_.Finish();
  ASSERT_EQ(profile_.heaps[0].blocks.size(), kMost);
  EXPECT_EQ(profile_.heaps[0].blocks[0].size, kBeyond + 1);
  EXPECT_EQ(profile_.quality.unlisted_blocks, kBeyond);
}

TEST_F(TargetDumperTest, CountersThatNobodyReachesAreCut) {
  ring().lost_records.store(UINT64_MAX);
  ring().slot_count.store(UINT32_MAX);
  dumper_.Update();
  EXPECT_EQ(profile_.quality.lost_records, uint64_t{1} << 53);
}

}  // namespace
}  // namespace heapprofd
