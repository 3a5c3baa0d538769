#include "profile/live_sample.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace heapprofd {
namespace {

constexpr uint64_t kBirthNs = uint64_t{1} << 40;

LiveSample SampleOfThread(ThreadId thread) {
  return {{.address = 1, .size = 100, .thread = thread}, 0, 0, kBirthNs};
}

// There are millions of them.
static_assert(sizeof(LiveSample) == 24);

TEST(LiveSampleTest, EveryMemberKeepsItsHighestValue) {
  const SampledAllocation largest{.address = 1,
                                  .size = (uint64_t{1} << 57) - 1,
                                  .interval = uint64_t{1} << 40,
                                  .callsite = 5,
                                  .thread = (1u << 15) - 1};
  const LiveSample sample(largest, (1u << 24) - 1, 3, kBirthNs);
  EXPECT_EQ(sample.size(), largest.size);
  EXPECT_EQ(sample.interval(), largest.interval);
  EXPECT_EQ(sample.thread(), largest.thread);
  EXPECT_EQ(sample.row(), (1u << 24) - 1);
  EXPECT_EQ(sample.halves(), 3);
}

TEST(LiveSampleTest, WhatIsTooLargeLeavesTheOtherMembersAlone) {
  const SampledAllocation lie{
      .address = 1, .size = UINT64_MAX, .interval = UINT64_MAX, .thread = UINT32_MAX};
  const LiveSample sample(lie, 7, 2, kBirthNs);
  EXPECT_EQ(sample.row(), 7u);
  EXPECT_EQ(sample.halves(), 2);
  EXPECT_EQ(sample.AgeNs(kBirthNs + 4096), 4096u);
}

TEST(LiveSampleTest, AgesAreRoundedAndNeverZero) {
  const LiveSample sample = SampleOfThread(1);
  EXPECT_EQ(sample.AgeNs(kBirthNs), 1u);
  EXPECT_EQ(sample.AgeNs(kBirthNs + 300), 256u);
  EXPECT_EQ(sample.AgeNs(kBirthNs - 5000), 1u);  // another processor's clock
}

TEST(LiveSampleTest, AgesOutlastTheBitsThatTimesAreKeptIn) {
  const uint64_t birth_ns = (uint64_t{1} << 55) - 512;
  const LiveSample sample({.address = 1, .size = 1}, 0, 0, birth_ns);
  EXPECT_EQ(sample.AgeNs(birth_ns + 1024), 1024u);
}

TEST(LiveSampleTest, OnlyItsOwnThreadSoonMakesItTemporary) {
  const LiveSample sample = SampleOfThread(4);
  const uint64_t soon_ns = kBirthNs + kTemporaryNs / 2;
  EXPECT_TRUE(sample.EndBy({.thread = 4, .now_ns = soon_ns}).is_temporary);
  EXPECT_FALSE(sample.EndBy({.thread = 5, .now_ns = soon_ns}).is_temporary);
  const BlockShapes::End late =
      sample.EndBy({.thread = 4, .now_ns = kBirthNs + 2 * kTemporaryNs});
  EXPECT_FALSE(late.is_temporary);
  EXPECT_NEAR(static_cast<double>(late.lived_ns), 2.0 * kTemporaryNs, 256);
}

TEST(LiveSampleTest, NobodyKnowsWhenTellsNothing) {
  const BlockShapes::End end = SampleOfThread(kUnknownThread).EndBy({});
  EXPECT_EQ(end.lived_ns, 0u);
  EXPECT_FALSE(end.is_temporary);
  EXPECT_FALSE(SampleOfThread(kUnknownThread)
                   .EndBy({.thread = kUnknownThread, .now_ns = kBirthNs + 256})
                   .is_temporary);
}

}  // namespace
}  // namespace heapprofd
