// Programs that are started and never heard of are counted once, with their reason.
#include "engine/unrecorded.h"

#include <gtest/gtest.h>

namespace heapprofd {
namespace {

using Names = std::vector<std::string>;

TEST(ProgramWatchTest, AProgramThatReportsIsNotMissed) {
  ProgramWatch watch;
  watch.Attempt(10, 100, "/bin/sh", UnrecordedReason::kNotLoaded);
  watch.Recorded(10, 150);
  EXPECT_TRUE(watch.Unrecorded().empty());
}

TEST(ProgramWatchTest, AReportMayBeFasterThanTheNewsOfTheStart) {
  ProgramWatch watch;
  watch.Recorded(10, 150);
  watch.Attempt(10, 100, "/bin/sh", UnrecordedReason::kNotLoaded);
  EXPECT_TRUE(watch.Unrecorded().empty());
}

TEST(ProgramWatchTest, AProcessThatReportedAndThenBecameSomethingElseIsMissed) {
  ProgramWatch watch;
  watch.Recorded(10, 150);
  watch.Attempt(10, 200, "busybox", UnrecordedReason::kStatic);
  const std::vector<UnrecordedPrograms> missed = watch.Unrecorded();
  ASSERT_EQ(missed.size(), 1u);
  EXPECT_EQ(missed[0].reason, UnrecordedReason::kStatic);
  EXPECT_EQ(missed[0].count, 1u);
  EXPECT_EQ(missed[0].names, Names{"busybox"});
}

TEST(ProgramWatchTest, AnExecThatFailedStartedNothing) {
  ProgramWatch watch;
  watch.Attempt(10, 100, "/bin/sh", UnrecordedReason::kCleanedEnvironment);
  watch.Failed(10);
  EXPECT_TRUE(watch.Unrecorded().empty());
}

TEST(ProgramWatchTest, AProcessIdThatIsUsedAgainCountsTwice) {
  ProgramWatch watch;
  watch.Attempt(10, 100, "a", UnrecordedReason::kStatic);
  watch.Attempt(10, 200, "b", UnrecordedReason::kStatic);
  const std::vector<UnrecordedPrograms> missed = watch.Unrecorded();
  ASSERT_EQ(missed.size(), 1u);
  EXPECT_EQ(missed[0].count, 2u);
  EXPECT_EQ(missed[0].names, (Names{"a", "b"}));
}

TEST(ProgramWatchTest, ConfinedChildrenAreCountedUnderTheirParentsName) {
  ProgramWatch watch;
  watch.Count("quiet", UnrecordedReason::kConfined, 0);
  watch.Count("zygote", UnrecordedReason::kConfined, 3);
  watch.Count("zygote", UnrecordedReason::kConfined, 2);
  const std::vector<UnrecordedPrograms> missed = watch.Unrecorded();
  ASSERT_EQ(missed.size(), 1u);
  EXPECT_EQ(missed[0].reason, UnrecordedReason::kConfined);
  EXPECT_EQ(missed[0].count, 5u);
  EXPECT_EQ(missed[0].names, Names{"zygote"});
}

TEST(ProgramWatchTest, ReasonsAreKeptApartAndNamesAreFew) {
  ProgramWatch watch;
  for (int i = 0; i < 100; ++i)
    watch.Attempt(1000 + i, 1, "tool" + std::to_string(i), UnrecordedReason::kStatic);
  watch.Attempt(5, 1, "sh", UnrecordedReason::kCleanedEnvironment);
  const std::vector<UnrecordedPrograms> missed = watch.Unrecorded();
  ASSERT_EQ(missed.size(), 2u);
  EXPECT_EQ(missed[0].count, 100u);
  EXPECT_EQ(missed[0].names.size(), 5u);
  EXPECT_EQ(missed[1].reason, UnrecordedReason::kCleanedEnvironment);
}

TEST(ProgramWatchTest, ALiarCannotMakeItGrow) {
  ProgramWatch watch;
  for (int i = 0; i < 300'000; ++i) {
    watch.Attempt(i, 1, "x", UnrecordedReason::kNotLoaded);
    watch.Recorded(-i - 1, 1);
  }
  const std::vector<UnrecordedPrograms> missed = watch.Unrecorded();
  ASSERT_EQ(missed.size(), 1u);
  EXPECT_EQ(missed[0].count, 300'000u);
}

TEST(ProgramWatchTest, OneThatIsGoneBeforeItIsAnsweredHasTheNameItWasStartedBy) {
  ProgramWatch watch;
  watch.Attempt(1, 10, "/bin/x", UnrecordedReason::kNotLoaded);
  watch.Missed(1, 20, "", "", UnrecordedReason::kLate);
  watch.Missed(2, 20, "", "", UnrecordedReason::kLate);
  watch.Missed(3, 20, "y", "why", UnrecordedReason::kDeclined);
  const std::vector<UnrecordedPrograms> missed = watch.Unrecorded();
  ASSERT_EQ(missed.size(), 2u);
  EXPECT_EQ(missed[0].names, std::vector<std::string>({"y: why"}));
  EXPECT_EQ(missed[1].reason, UnrecordedReason::kLate);
  EXPECT_EQ(missed[1].count, 2u);
  EXPECT_EQ(missed[1].names, std::vector<std::string>({"/bin/x", "process 2"}));
}

// Whoever spawns a program says so when it runs already.
TEST(ProgramWatchTest, TheNameOfOneThatIsGoneMayComeLate) {
  ProgramWatch watch;
  watch.Missed(1, 20, "", "", UnrecordedReason::kLate);
  watch.Attempt(1, 10, "/bin/x", UnrecordedReason::kNotLoaded);
  watch.Failed(1);
  watch.Missed(2, 20, "", "", UnrecordedReason::kLate);
  watch.Recorded(2, 30);  // the process id is used again
  const std::vector<UnrecordedPrograms> missed = watch.Unrecorded();
  ASSERT_EQ(missed.size(), 1u);
  EXPECT_EQ(missed[0].count, 2u);
  EXPECT_EQ(missed[0].names, std::vector<std::string>({"/bin/x", "process 2"}));
}

}  // namespace
}  // namespace heapprofd
