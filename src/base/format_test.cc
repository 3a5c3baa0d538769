#include "base/format.h"

#include <gtest/gtest.h>

namespace heapprofd {
namespace {

TEST(FormatTest, BytesHaveThreeSignificantDigitsAndAnIecUnit) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1024), "1.00 KiB");
  EXPECT_EQ(FormatBytes(12.34 * 1024), "12.3 KiB");
  EXPECT_EQ(FormatBytes(128.4 * 1024 * 1024), "128 MiB");
  EXPECT_EQ(FormatBytes(1000 * 1024), "0.98 MiB");
  EXPECT_EQ(FormatBytes(-2048), "-2.00 KiB");
}

TEST(FormatTest, CountsAreExactUntilTheyNeedAUnit) {
  EXPECT_EQ(FormatCounted(1, "call", "calls"), "1 call");
  EXPECT_EQ(FormatCounted(0, "call", "calls"), "0 calls");
  EXPECT_EQ(FormatCounted(1.6, "call", "calls"), "2 calls");
  EXPECT_EQ(FormatCounted(1e6, "call", "calls"), "1.00 M calls");
  EXPECT_EQ(FormatCount(950), "950");
  EXPECT_EQ(FormatCount(22100), "22.1 k");
  EXPECT_EQ(FormatCount(22.14e6), "22.1 M");
}

TEST(FormatTest, DurationsChangeUnitWithTheirLength) {
  EXPECT_EQ(FormatDuration(0.0125), "12 ms");
  EXPECT_EQ(FormatDuration(12.42), "12.4 s");
  EXPECT_EQ(FormatDuration(200), "3 min 20 s");
}

TEST(FormatTest, AShareOfNothingIsZero) {
  EXPECT_EQ(FormatShare(1, 0), "0%");
  EXPECT_EQ(FormatShare(1, 2), "50%");
  EXPECT_EQ(FormatShare(4, 1000), "0.4%");
}

}  // namespace
}  // namespace heapprofd
