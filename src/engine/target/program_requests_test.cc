#include "engine/target/program_requests.h"

#include <gtest/gtest.h>

namespace heapprofd {
namespace {

constexpr uid_t kUser = 1000;

TEST(ProgramRequestsTest, DumpsAreKeptAsTheHeapsWereThen) {
  TargetProfile profile;
  ProgramRequests requests(&profile);
  profile.heaps.resize(1);
  profile.heaps[0].end_ns = 7;
  ASSERT_TRUE(requests.MayDump());
  requests.KeepDump();
  profile.heaps[0].end_ns = 8;
  ASSERT_EQ(profile.requested_dumps.size(), 1u);
  EXPECT_EQ(profile.requested_dumps[0][0].end_ns, 7u);
  EXPECT_GT(requests.cost(), 0u);
  EXPECT_EQ(profile.quality.refused_dumps, 0u);
}

TEST(ProgramRequestsTest, DumpsHaveABoundWithoutABudget) {
  TargetProfile profile;
  ProgramRequests requests(&profile);
  uint64_t made = 0;
  for (; requests.MayDump(); ++made) {
    requests.KeepDump();
    profile.requested_dumps.clear();  // as they are taken
  }
  EXPECT_GT(made, 10u);
  EXPECT_EQ(profile.quality.refused_dumps, 1u);
  requests.KeepMark({.time_ns = 1, .name = "still"});
  EXPECT_EQ(profile.marks.size(), 1u);
}

TEST(ProgramRequestsTest, AUsersProgramsShareABudgetUntilTheyAreGone) {
  UserBudget budget(/*limit_of_user=*/2, /*limit=*/1000);
  TargetProfile profile;
  {
    TargetProfile other;
    ProgramRequests first(&other);
    first.set_budget(&budget, kUser);
    for (int i = 0; i < 3; ++i)
      first.KeepMark({.time_ns = 1, .name = ""});
    EXPECT_EQ(other.marks.size() + other.quality.refused_marks, 3u);
    EXPECT_GE(other.quality.refused_marks, 1u);
    ProgramRequests second(&profile);
    second.set_budget(&budget, kUser);
    second.KeepMark({.time_ns = 1, .name = ""});
    EXPECT_FALSE(second.MayDump());
    EXPECT_EQ(profile.quality.refused_marks, 1u);
    EXPECT_EQ(profile.quality.refused_dumps, 1u);
  }
  EXPECT_EQ(budget.used(), 0u);
}

}  // namespace
}  // namespace heapprofd
