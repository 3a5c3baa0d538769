// What a target can make reading its maps cost, by a clock of the test's.
#include "unwind/refresh_pause.h"

#include <gtest/gtest.h>

namespace heapprofd {
namespace {

TEST(RefreshPauseTest, ARefreshThatDidNotHelpIsRepeatedAfterTenTimesWhatItTook) {
  constexpr uint64_t kMs = 1'000'000;
  RefreshPause pause;
  uint64_t now = 1000 * kMs;
  EXPECT_TRUE(pause.IsOver(now));
  pause.Note(now, now + 40 * kMs, /*was_vain=*/true);
  EXPECT_FALSE(pause.IsOver(now + 439 * kMs));
  EXPECT_TRUE(pause.IsOver(now + 440 * kMs));
  now += 5000 * kMs;
  pause.Note(now, now, /*was_vain=*/true);
  EXPECT_FALSE(pause.IsOver(now + 4 * kMs));
  EXPECT_TRUE(pause.IsOver(now + 5 * kMs));
}

TEST(RefreshPauseTest, RefreshesThatHelpAreFreeUntilTheyTakeATenthOfOurTime) {
  constexpr uint64_t kMs = 1'000'000;
  RefreshPause pause;
  uint64_t now = 1000 * kMs;
  for (int i = 0; i < 10; ++i, now += 51 * kMs) {  // its begin, on a busy machine
    EXPECT_TRUE(pause.IsOver(now)) << i;
    pause.Note(now, now + 50 * kMs, /*was_vain=*/false);
  }
  now += 1000 * kMs;
  for (int i = 0; i < 20; ++i, now += kMs) {  // a program that loads its plug-ins
    EXPECT_TRUE(pause.IsOver(now)) << i;
    pause.Note(now, now + kMs / 2, /*was_vain=*/false);
  }
  uint64_t spent = 0;
  const uint64_t end = now + 10'000 * kMs;
  while (now < end) {
    if (pause.IsOver(now)) {
      pause.Note(now, now + 40 * kMs, /*was_vain=*/false);
      now += 40 * kMs;
      spent += 40 * kMs;
    }
    now += kMs;
  }
  EXPECT_LT(spent, 1100 * kMs);
}

}  // namespace
}  // namespace heapprofd
