// The lines about programs that could not be recorded.
#include "cli/results/unrecorded_text.h"

#include <gtest/gtest.h>

namespace heapprofd {
namespace {

TEST(UnrecordedTextTest, ALineHoldsTheCountTheNamesTheCauseAndTheRemedy) {
  const std::vector<std::string> lines = UnrecordedWarnings(
      {{.reason = UnrecordedReason::kStatic, .count = 7, .names = {"busybox", "go"}},
       {.reason = UnrecordedReason::kCleanedEnvironment,
        .count = 1,
        .names = {"/bin/sh"}}});
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0],
            "7 programs were not recorded (busybox, go, ...): statically linked, so no "
            "library can be preloaded; use dynamically linked builds");
  EXPECT_TRUE(lines[1].starts_with("1 program was not recorded (/bin/sh): started with"))
      << lines[1];
}

TEST(UnrecordedTextTest, EveryReasonHasItsOwnWordsAndARemedy) {
  std::vector<UnrecordedPrograms> groups;
  for (size_t i = 0; i < kUnrecordedReasons; ++i)
    groups.push_back(
        {.reason = static_cast<UnrecordedReason>(i), .count = 1, .names = {"x"}});
  const std::vector<std::string> lines = UnrecordedWarnings(groups);
  ASSERT_EQ(lines.size(), kUnrecordedReasons);
  const auto line_of = [&](UnrecordedReason reason) {
    return lines[static_cast<size_t>(reason)];
  };
  EXPECT_EQ(line_of(UnrecordedReason::k32Bit),
            "1 program was not recorded (x): 32-bit, and only 64-bit programs can be "
            "recorded; use 64-bit builds");
  EXPECT_EQ(line_of(UnrecordedReason::kOtherMachine),
            "1 program was not recorded (x): for another machine, and only programs for "
            "this one can be recorded; use builds for this machine");
  EXPECT_EQ(line_of(UnrecordedReason::kPrivileged),
            "1 program was not recorded (x): gaining privileges at the start (setuid or "
            "capabilities), so the loader ignores LD_PRELOAD; run heap_profile as root");
  EXPECT_EQ(line_of(UnrecordedReason::kDeclined),
            "1 program was not recorded (x): the profiler could not take them on; the "
            "brackets say why");
  EXPECT_EQ(
      line_of(UnrecordedReason::kOutOfReach),
      "1 program was not recorded (x): begun where the profiler's socket is not "
      "there or not allowed (in a chroot, in a mount name space of their own, or as "
      "another user); use -p or -n, which need none");
  EXPECT_EQ(line_of(UnrecordedReason::kNoDescriptor),
            "1 program was not recorded (x): without a file descriptor left to ask the "
            "profiler with; raise their ulimit -n");
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_NE(lines[i].find("; "), std::string::npos) << lines[i];
    for (size_t j = 0; j < i; ++j)
      EXPECT_NE(lines[i], lines[j]);
  }
}

TEST(UnrecordedTextTest, NamesCannotSteerTheTerminal) {
  const std::vector<std::string> lines = UnrecordedWarnings(
      {{.reason = UnrecordedReason::kNotLoaded, .count = 1, .names = {"a\033[2Jb\n"}}});
  EXPECT_NE(lines.at(0).find("(a?[2Jb?)"), std::string::npos) << lines[0];
}

}  // namespace
}  // namespace heapprofd
