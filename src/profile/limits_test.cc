// Known limits of Poisson variables, and that exact counts bound what is shown.
#include "profile/limits.h"

#include <gtest/gtest.h>

#include <cmath>

namespace heapprofd {
namespace {

constexpr uint64_t kInterval = 4096;

// A sum of `n` samples of blocks that are far smaller than the interval.
Estimate SmallBlocks(double n) {
  const auto weight = static_cast<double>(kInterval);
  return {.bytes = n * weight, .count = n, .bytes_variance = n * weight * weight};
}

TEST(LimitsTest, AreThoseOfAPoissonVariable) {
  struct Case {
    double n;
    double low;
    double high;
  };

  for (const Case& known :
       {Case{.n = 0, .low = 0, .high = 3.689}, Case{.n = 1, .low = 0.025, .high = 5.572},
        Case{.n = 10, .low = 4.795, .high = 18.39},
        Case{.n = 100, .low = 81.36, .high = 121.63}}) {
    EXPECT_NEAR(LowerLimit(SmallBlocks(known.n), kInterval) / kInterval, known.low, 0.03);
    EXPECT_NEAR(UpperLimit(SmallBlocks(known.n), kInterval) / kInterval, known.high,
                0.03);
  }
}

TEST(LimitsTest, ManySamplesHaveThoseOfANormalVariable) {
  for (const double n : {9.9e5, 1.1e6, 1e12}) {
    const Estimate sum = SmallBlocks(n);
    const double side = 1.96 * std::sqrt(sum.bytes_variance);
    EXPECT_NEAR((UpperLimit(sum, kInterval) - sum.bytes) / side, 1, 0.01);
    EXPECT_NEAR((sum.bytes - LowerLimit(sum, kInterval)) / side, 1, 0.01);
  }
}

TEST(LimitsTest, ARecordingOfEverythingIsExact) {
  const Estimate sum{.bytes = 100, .count = 1};
  EXPECT_EQ(LowerLimit(sum, 1), 100);
  EXPECT_EQ(UpperLimit(sum, 1), 100);
}

HeapDump DumpOf(const Estimate& live) {
  HeapDump dump;
  dump.sampling_interval = kInterval;
  dump.callsites[0].allocated = live;
  return dump;
}

TEST(LimitsTest, LiveIsWithinWhatWasCounted) {
  HeapDump dump = DumpOf(SmallBlocks(10));
  dump.possible_live = 9 * kInterval;
  const BoundedBytes live = LiveTotal(dump);
  EXPECT_EQ(live.bytes, dump.possible_live);
  EXPECT_EQ(live.high, dump.possible_live);
  EXPECT_NEAR(live.low / kInterval, 4.795, 0.03);
}

TEST(LimitsTest, LiveIsAtLeastWhatIsCertain) {
  HeapDump dump = DumpOf(SmallBlocks(1) + Estimate{.bytes = 1e6, .count = 1});
  dump.certain_live = 1e6;
  dump.possible_live = 1e6 + 100;
  const BoundedBytes live = LiveTotal(dump);
  EXPECT_GE(live.low, 1e6);
  EXPECT_EQ(live.high, 1e6 + 100);
}

TEST(LimitsTest, NothingSampledIsNotNothing) {
  HeapDump dump = DumpOf({});
  const BoundedBytes live = LiveTotal(dump);
  EXPECT_EQ(live.bytes, 0);
  EXPECT_EQ(live.low, 0);
  EXPECT_NEAR(live.high / kInterval, 3.689, 0.03);
  dump.possible_live = 0;
  EXPECT_EQ(LiveTotal(dump).high, 0);
}

TEST(LimitsTest, WhatCouldNotBeSampledMayBeLive) {
  HeapDump dump = DumpOf(SmallBlocks(10));
  const double high = LiveTotal(dump).high;
  dump.unsampled_bytes = 1e6;
  EXPECT_EQ(LiveTotal(dump).high, high + 1e6);
  dump.possible_live = high + 1000;
  EXPECT_EQ(LiveTotal(dump).high, std::round(high + 1000));
}

TEST(LimitsTest, ManyHeapsAreBoundedTogether) {
  constexpr int kHeaps = 400;
  const double truth =
      2 * kInterval;  // of each: half of them show twice as much, half nothing
  LiveSum sum;
  double cut_one_by_one = 0;
  for (int i = 0; i < kHeaps; ++i) {
    HeapDump dump = DumpOf(SmallBlocks(i % 2 == 0 ? 4 : 0));
    dump.possible_live = truth;
    sum.Add(dump);
    cut_one_by_one += LiveTotal(dump).bytes;
  }
  EXPECT_EQ(cut_one_by_one, kHeaps / 2 * truth);
  const BoundedBytes live = sum.Total();
  EXPECT_EQ(live.bytes, kHeaps * truth);
  EXPECT_LE(live.low, kHeaps * truth);
  EXPECT_EQ(live.high, kHeaps * truth);
}

// Samples stand for what others have allocated, too: those of ten children for that of a
// hundred.
TEST(LimitsTest, ChildrenWithoutASampleAreInTheBound) {
  HeapDump dump = DumpOf(SmallBlocks(10));
  dump.possible_live = kInterval;
  LiveSum sum;
  sum.Add(dump);
  EXPECT_EQ(sum.Total().high, kInterval);
  ForkedChildren children;
  children.count = 9;
  children.alloc_bytes = 20 * kInterval;
  sum.AddUnsampled(children);
  EXPECT_EQ(sum.Total().bytes, 10 * kInterval);
  EXPECT_GT(sum.Total().high, 11 * kInterval);
  EXPECT_LE(sum.Total().high, 21 * kInterval);
  children.uncounted = 1;
  sum.AddUnsampled(children);
  EXPECT_EQ(sum.Total().bytes, 10 * kInterval);
}

TEST(LimitsTest, WhatIsPossibleIsUnknownWhenItIsOfOneHeap) {
  LiveSum sum;
  HeapDump dump = DumpOf(SmallBlocks(10));
  sum.Add(dump);
  dump.possible_live = 1;
  sum.Add(dump);
  EXPECT_EQ(sum.Total().bytes, 20 * kInterval);
}

TEST(LimitsTest, LimitsOfPeaksAddUp) {
  const BoundedBytes sum = SumOf({.bytes = 10, .low = 7, .high = 14}, {5, 1, 8});
  EXPECT_EQ(sum.bytes, 15);
  EXPECT_EQ(sum.low, 8);
  EXPECT_EQ(sum.high, 22);
}

// Adaptive sampling raises it. The samples that were taken before still weigh little.
TEST(LimitsTest, ALargerIntervalMakesNoLowerLimitTighter) {
  const Estimate sum = SmallBlocks(100);
  const double side = sum.bytes - LowerLimit(sum, kInterval);
  for (const uint64_t interval : {16 * kInterval, 256 * kInterval, 65536 * kInterval}) {
    EXPECT_NEAR((sum.bytes - LowerLimit(sum, interval)) / side, 1, 0.001);
    EXPECT_GE(UpperLimit(sum, interval), UpperLimit(sum, kInterval));
  }
}

}  // namespace
}  // namespace heapprofd
