#include "cli/record/heap_curve.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace heapprofd {
namespace {

constexpr uint64_t kCurveBegin = 1'000'000;

// 100 bytes for the first sixth of the time, then 10.
CurvePoint StepAt(uint64_t age) {
  return {.time_ns = kCurveBegin + age, .live_bytes = age < 100 ? 100.0 : 10.0};
}

double ShareOfHigh(const std::vector<CurvePoint>& points) {
  const std::vector<double> values =
      EvenlySpaced(points, {kCurveBegin, kCurveBegin + 600});
  EXPECT_EQ(values.size(), points.size());
  return static_cast<double>(std::ranges::count(values, 100.0)) /
         static_cast<double>(values.size());
}

TEST(HeapCurveTest, ThePaceOfTheLooksDoesNotBendIt) {
  std::vector<CurvePoint> even;
  std::vector<CurvePoint> ever_rarer;
  for (uint64_t age = 0; age < 600; age += 5)
    even.push_back(StepAt(age));
  for (uint64_t age = 0, pause = 2; age < 600; age += pause, pause = age < 100 ? 2 : 50)
    ever_rarer.push_back(StepAt(age));
  EXPECT_NEAR(ShareOfHigh(even), 1.0 / 6, 0.02);
  EXPECT_NEAR(ShareOfHigh(ever_rarer), 1.0 / 6, 0.02);
}

TEST(HeapCurveTest, WhatOutlastsTheLooksIsAtTheEnd) {
  EXPECT_EQ(EvenlySpaced({{5, 1}, {20, 3}, {21, 2}}, {10, 20}),
            (std::vector<double>{1, 1, 3}));
}

TEST(HeapCurveTest, APartWithoutALookIsAsItWasBefore) {
  EXPECT_EQ(EvenlySpaced({{0, 7}, {1, 4}, {90, 5}}, {0, 90}),
            (std::vector<double>{7, 4, 5}));
  EXPECT_EQ(EvenlySpaced({{80, 7}, {85, 9}}, {0, 90}), (std::vector<double>{7, 9}));
  EXPECT_EQ(EvenlySpaced({{80, 7}, {85, 9}, {88, 3}}, {0, 90}),
            (std::vector<double>{7, 7, 9}));
}

TEST(HeapCurveTest, NothingSeenAndNoTimeAtAllAreNoTrouble) {
  EXPECT_TRUE(EvenlySpaced({}, {0, 90}).empty());
  EXPECT_EQ(EvenlySpaced({{5, 1}, {5, 2}}, {5, 5}).size(), 2u);
  EXPECT_EQ(EvenlySpaced({{5, 1}, {6, 2}}, {90, 5}).size(), 2u);
}

}  // namespace
}  // namespace heapprofd
