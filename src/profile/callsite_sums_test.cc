#include "profile/callsite_sums.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "profile/estimate.h"

namespace heapprofd {
namespace {

class CallsiteSumsTest : public testing::Test {
 protected:
  // Certain to be sampled, unless it belongs to `halves`.
  LiveSample Allocate(CallsiteId callsite,
                      uint64_t size,
                      PeakEstimator::Halves halves = 0) {
    const LiveSample sample({.address = 1, .size = size}, sums_.RowOf(callsite), halves,
                            0);
    sums_.Allocate(sample, EstimateOf(sample));
    return sample;
  }

  void Free(const LiveSample& sample) { sums_.Free(sample, EstimateOf(sample)); }

  static Estimate EstimateOf(const LiveSample& sample) {
    return EstimateOfSample(sample.size(), 1);
  }

  std::vector<std::pair<CallsiteId, double>> PeakBytes(double scale = 1) const {
    HeapDump dump;
    sums_.Snapshot(scale, &dump);
    std::vector<std::pair<CallsiteId, double>> bytes;
    for (const auto& [callsite, estimate] : dump.peak)
      bytes.emplace_back(callsite, estimate.bytes);
    return bytes;
  }

  CallsiteSums sums_;
};

using CallsiteBytes = std::vector<std::pair<CallsiteId, double>>;

TEST_F(CallsiteSumsTest, ACallsiteHasOneRow) {
  const uint32_t row = sums_.RowOf(70);
  EXPECT_EQ(sums_.RowOf(70), row);
  EXPECT_NE(sums_.RowOf(60), row);
  EXPECT_EQ(sums_.CallsiteOf(row), 70u);
  EXPECT_EQ(sums_.size(), 2u);
  EXPECT_TRUE(sums_.Contains(60));
  EXPECT_FALSE(sums_.Contains(61));
}

TEST_F(CallsiteSumsTest, ThePeakStaysWhereItWas) {
  const LiveSample first = Allocate(1, 100);
  Allocate(2, 20);
  sums_.BeginPeak();
  Free(first);
  Allocate(2, 5);
  Allocate(3, 7);
  EXPECT_EQ(PeakBytes(), (CallsiteBytes{{1, 100}, {2, 20}}));
}

// Nobody has saved what it had: it is what it has.
TEST_F(CallsiteSumsTest, WhatDoesNotChangeAfterThePeakIsPartOfIt) {
  Allocate(1, 100);
  sums_.BeginPeak();
  const LiveSample second = Allocate(2, 20);
  sums_.BeginPeak();
  Free(second);
  EXPECT_EQ(PeakBytes(), (CallsiteBytes{{1, 100}, {2, 20}}));
}

TEST_F(CallsiteSumsTest, WhatComesBackHasNotBeenFreed) {
  const LiveSample sample = Allocate(1, 100);
  Free(sample);
  sums_.Return(sample, EstimateOf(sample));
  sums_.BeginPeak();
  HeapDump dump;
  sums_.Snapshot(1, &dump);
  EXPECT_EQ(dump.callsites.at(1).allocated.bytes, 100);
  EXPECT_EQ(dump.callsites.at(1).freed.bytes, 0);
  EXPECT_EQ(PeakBytes(), (CallsiteBytes{{1, 100}}));
}

TEST_F(CallsiteSumsTest, OnlyWhatIsEstimatedIsScaled) {
  Allocate(1, 100);
  const LiveSample estimated = Allocate(1, 40, /*halves=*/1);
  const LiveSample certain = Allocate(2, 10);
  sums_.BeginPeak();
  EXPECT_EQ(PeakBytes(0.5), (CallsiteBytes{{1, 120}, {2, 10}}));
  Free(estimated);
  Free(certain);
  EXPECT_EQ(PeakBytes(0.5), (CallsiteBytes{{1, 120}, {2, 10}}));
}

TEST_F(CallsiteSumsTest, DumpsAreInTheOrderOfCallsites) {
  for (const CallsiteId callsite : {7u, 3u, 5u, 0u})
    Allocate(callsite, callsite + 1);
  sums_.BeginPeak();
  EXPECT_EQ(PeakBytes(), (CallsiteBytes{{0, 1}, {3, 4}, {5, 6}, {7, 8}}));
}

TEST_F(CallsiteSumsTest, ADumpIsFilledAnew) {
  Allocate(1, 100);
  sums_.BeginPeak();
  HeapDump dump;
  dump.callsites.emplace(9, {});
  dump.peak.emplace(9, {.bytes = 1});
  sums_.Snapshot(1, &dump);
  EXPECT_EQ(dump.callsites.size(), 1u);
  EXPECT_EQ(dump.peak.size(), 1u);
}

}  // namespace
}  // namespace heapprofd
