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

}  // namespace
}  // namespace heapprofd
