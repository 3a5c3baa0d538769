#include "query/histogram.h"

#include <gtest/gtest.h>

namespace heapprofd {
namespace {

// Of one bin, each of a callsite of its own.
ShapeTable RowsOf(const std::vector<int64_t>& sizes) {
  ShapeTable rows;
  for (const int64_t size : sizes) {
    rows.dump.push_back(0);
    rows.callsite.push_back(static_cast<uint32_t>(rows.callsite.size()));
    rows.kind.push_back(static_cast<uint8_t>(ShapeKind::kLiveSize));
    rows.log2.push_back(4);
    rows.count.push_back(1);
    rows.size.push_back(size);
    rows.count_error.push_back(0);
    rows.size_error.push_back(0);
  }
  return rows;
}

using Three = std::array<uint32_t, 3>;

Three RowsIn(const HistogramSum& sum) {
  return {sum.largest[0].row, sum.largest[1].row, sum.largest[2].row};
}

Three LargestOf(const std::vector<int64_t>& sizes) {
  const auto sums = SumHistogram(RowsOf(sizes));
  EXPECT_EQ(sums.size(), 1u);
  return RowsIn(sums.begin()->second);
}

TEST(HistogramTest, OfEqualOnesTheFirstAreKept) {
  EXPECT_EQ(LargestOf({10, 10, 10, 20}), (Three{3, 0, 1}));
  EXPECT_EQ(LargestOf({10, 20, 10, 20, 10}), (Three{1, 3, 0}));
  EXPECT_EQ(LargestOf({5, 5}), (Three{0, 1, kNoId}));
}

TEST(HistogramTest, ThreadsOfACallsiteCountTogether) {
  ShapeTable rows = RowsOf({30, 20, 20, 10});
  rows.callsite[2] = rows.callsite[1];
  rows.count_error[1] = 3;
  rows.count_error[2] = 4;
  const ShapeSum sum = SumOfThreads(rows, 1);
  EXPECT_EQ(sum.size, 40);
  EXPECT_EQ(sum.count, 2);
  EXPECT_EQ(sum.variance, 25);
  EXPECT_EQ(sum.end, 3u);
  const auto sums = SumHistogram(rows);
  ASSERT_EQ(sums.size(), 1u);
  EXPECT_EQ(sums.begin()->second.size, 80);
  EXPECT_EQ(sums.begin()->second.variance, 25);
  EXPECT_EQ(RowsIn(sums.begin()->second), (Three{1, 0, 3}));
  EXPECT_EQ(sums.begin()->second.largest[0].size, 40);
}

TEST(HistogramTest, WhatIsOfNoCallsiteIsInTheSumAndHoldsNothing) {
  ShapeTable rows = RowsOf({10, 90, 30});
  rows.callsite[1] = kNoId;
  const auto sums = SumHistogram(rows);
  ASSERT_EQ(sums.size(), 1u);
  EXPECT_EQ(sums.begin()->second.size, 130);
  EXPECT_EQ(RowsIn(sums.begin()->second), (Three{2, 0, kNoId}));
  for (uint8_t& kind : rows.kind)
    kind = static_cast<uint8_t>(ShapeKind::kTemporary);
  EXPECT_EQ(LargestTemporary(rows, 3), (std::vector<uint32_t>{0, 2}));
}

TEST(HistogramTest, OfNoRowsThereAreNoSums) {
  EXPECT_TRUE(SumHistogram({}).empty());
}

}  // namespace
}  // namespace heapprofd
