// The report's page has the same table: tests/e2e/report_test.py,
// test_evidence_of_leaks_needs_dumps_and_frees.
#include "cli/inspect/leak_evidence.h"

#include <gtest/gtest.h>

namespace heapprofd {
namespace {

TEST(LeakEvidenceTest, GrowthNeedsThreeDumpsTwoRisesAndNoFall) {
  EXPECT_EQ(EvidenceOf({1, 2, 3}, 3, true), Evidence::kGrowsNothingFreed);
  EXPECT_EQ(EvidenceOf({1, 2, 3}, 4, true), Evidence::kGrows);
  EXPECT_EQ(EvidenceOf({3, 3, 3}, 3, true), Evidence::kNothingFreed);
  EXPECT_EQ(EvidenceOf({3, 3, 3}, 4, true), Evidence::kNone);
  EXPECT_EQ(EvidenceOf({1, 3}, 3, true), Evidence::kNothingFreed);
  EXPECT_EQ(EvidenceOf({1, 3, 2, 4}, 9, true), Evidence::kNone);
  EXPECT_EQ(EvidenceOf({1, 1, 3}, 9, true), Evidence::kNone);
}

TEST(LeakEvidenceTest, NothingFreedIsEvidenceOnlyWhereFreesAreTold) {
  EXPECT_EQ(EvidenceOf({1, 2, 3}, 3, false), Evidence::kGrows);
  EXPECT_EQ(EvidenceOf({3}, 3, false), Evidence::kNone);
}

TEST(LeakEvidenceTest, BytesOfAnAgeAreTakenToHaveComeEvenly) {
  BytesByAge ages{};
  EXPECT_EQ(YoungerBytes(ages, 1000), 0);
  EXPECT_EQ(MedianAge(ages), std::nullopt);
  ages[4] = 100;  // 16 to 31 ns
  ages[6] = 300;  // 64 to 127 ns
  EXPECT_EQ(YoungerBytes(ages, 0), 0);
  EXPECT_EQ(YoungerBytes(ages, 16), 0);
  EXPECT_EQ(YoungerBytes(ages, 24), 50);
  EXPECT_EQ(YoungerBytes(ages, 64), 100);
  EXPECT_EQ(YoungerBytes(ages, 96), 250);
  EXPECT_EQ(YoungerBytes(ages, 128), 400);
  EXPECT_NEAR(*MedianAge(ages), 64 * (1 + 100.0 / 300), 1e-9);
}

}  // namespace
}  // namespace heapprofd
