#include "query/histogram.h"

#include <gtest/gtest.h>

namespace heapprofd {
namespace {

// Of one bin.
ShapeTable RowsOf(const std::vector<int64_t>& sizes) {
  ShapeTable rows;
  for (const int64_t size : sizes) {
    rows.dump.push_back(0);
    rows.callsite.push_back(0);
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

Three LargestOf(const std::vector<int64_t>& sizes) {
  const auto sums = SumHistogram(RowsOf(sizes));
  EXPECT_EQ(sums.size(), 1u);
  return sums.begin()->second.largest;
}

TEST(HistogramTest, OfEqualOnesTheFirstAreKept) {
  EXPECT_EQ(LargestOf({10, 10, 10, 20}), (Three{3, 0, 1}));
  EXPECT_EQ(LargestOf({10, 20, 10, 20, 10}), (Three{1, 3, 0}));
  EXPECT_EQ(LargestOf({5, 5}), (Three{0, 1, kNoId}));
}

TEST(HistogramTest, OfNoRowsThereAreNoSums) {
  EXPECT_TRUE(SumHistogram({}).empty());
}

}  // namespace
}  // namespace heapprofd
