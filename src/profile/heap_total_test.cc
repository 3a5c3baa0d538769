#include "profile/heap_total.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "profile/estimate.h"

namespace heapprofd {
namespace {

constexpr uint64_t kInterval = 4096;

class HeapTotalTest : public testing::Test {
 protected:
  LiveSample Allocate(uint64_t size, uint64_t now_ns = 1) {
    const SampledAllocation allocation{.address = 1, .size = size, .interval = kInterval};
    const Estimate estimate = EstimateOfSample(size, kInterval);
    const LiveSample sample(allocation, 0, total_.Allocate(allocation, estimate), now_ns);
    total_.NotePeak(now_ns);
    return sample;
  }

  void Free(const LiveSample& sample) {
    total_.Free(sample, EstimateOfSample(sample.size(), sample.interval()));
  }

  // As counted by the client; 0 calls: nobody has counted.
  HeapDump Dump(uint64_t exact_calls = 0, uint64_t exact_bytes = 0) const {
    HeapDump dump;
    dump.sampling_interval = kInterval;
    dump.exact_alloc_calls = exact_calls;
    dump.exact_alloc_bytes = exact_bytes;
    total_.Snapshot(&dump);
    return dump;
  }

  HeapTotal total_{1};
};

TEST_F(HeapTotalTest, WhatIsCertainIsExact) {
  const LiveSample sample = Allocate(10'000, 7);
  Allocate(5'000, 8);
  Free(sample);
  EXPECT_EQ(total_.live().bytes, 5'000);
  EXPECT_EQ(total_.allocated().bytes, 15'000);
  const HeapDump dump = Dump(2, 15'000);
  EXPECT_EQ(dump.peak_ns, 8u);
  EXPECT_EQ(dump.peak_total.bytes, 15'000);
  EXPECT_EQ(dump.certain_live, 5'000);
  EXPECT_EQ(dump.possible_live, 5'000);
}

TEST_F(HeapTotalTest, APeakIsNotedOnceAndNotWhenAsMuchIsLiveAgain) {
  const SampledAllocation allocation{.address = 1, .size = 8'000, .interval = kInterval};
  const Estimate estimate = EstimateOfSample(allocation.size, kInterval);
  const LiveSample sample(allocation, 0, total_.Allocate(allocation, estimate), 1);
  EXPECT_TRUE(total_.NotePeak(1));
  EXPECT_FALSE(total_.NotePeak(2));
  total_.Free(sample, estimate);
  EXPECT_FALSE(total_.NotePeak(3));
  total_.Return(sample, estimate);
  EXPECT_FALSE(total_.NotePeak(4));
  EXPECT_EQ(Dump().peak_ns, 1u);
}

TEST_F(HeapTotalTest, ExactTotalsLimitEstimates) {
  for (int i = 0; i < 10; ++i)
    Allocate(100);  // stands for some 4 kB
  EXPECT_GT(total_.live().bytes, 40'000);
  const HeapDump dump = Dump(20, 2'000);
  EXPECT_EQ(total_.LiveBytes(dump), 2'000);
  EXPECT_EQ(dump.possible_live, 2'000);
  EXPECT_EQ(dump.peak_total.bytes, 2'000);
  EXPECT_LE(dump.peak_total.high, 2'000);
}

TEST_F(HeapTotalTest, WhatNobodyCountedHasNoLimit) {
  Allocate(100);
  const HeapDump dump = Dump();
  EXPECT_EQ(dump.possible_live, std::numeric_limits<double>::infinity());
  EXPECT_EQ(total_.LiveBytes(dump), total_.live().bytes);
}

TEST_F(HeapTotalTest, NoCallAndNoSampleIsNothing) {
  const HeapDump dump = Dump();
  EXPECT_EQ(dump.possible_live, 0);
  EXPECT_EQ(dump.peak_total.high, 0);
  EXPECT_EQ(dump.peak_ns, 0u);
}

TEST_F(HeapTotalTest, ExactTotalsThatContradictSamplesAreNone) {
  Allocate(10'000);
  EXPECT_EQ(Dump(1, 9'000).possible_live, std::numeric_limits<double>::infinity());
}

// Scaled, the sampled part of the highest sum and what is certain of it are the peak.
TEST_F(HeapTotalTest, ThePeaksScaleIsThatOfItsSampledPart) {
  Allocate(50'000);
  double sampled = 0;
  for (int i = 0; i < 10; ++i) {
    const LiveSample sample = Allocate(100);
    sampled += EstimateOfSample(sample.size(), sample.interval()).bytes;
  }
  const double scale = total_.PeakScale({.bytes = 60'000, .low = 0, .high = 0});
  EXPECT_NEAR(50'000 + sampled * scale, 60'000, 1e-6);
  EXPECT_EQ(total_.PeakScale({.bytes = 40'000, .low = 0, .high = 0}), 0);
}

TEST_F(HeapTotalTest, WithoutASampledPartNothingIsScaled) {
  Allocate(50'000);
  EXPECT_EQ(total_.PeakScale({.bytes = 60'000, .low = 0, .high = 0}), 1);
}

}  // namespace
}  // namespace heapprofd
