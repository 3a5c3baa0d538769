#include "service/wake_pacing.h"

#include <gtest/gtest.h>

#include <vector>

namespace heapprofd {
namespace {

constexpr uid_t kModest = 61001;
constexpr uid_t kEager = 61002;
constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kStart = 1'000'000 * kMs;

// Of a user who wants one at each of these moments, 10 ms apart: when he gets them.
std::vector<uint64_t> WakesOf(uid_t user,
                              WakePacing* pacing,
                              uint64_t from_ms,
                              int turns) {
  std::vector<uint64_t> wakes;
  for (int i = 0; i < turns; ++i) {
    const uint64_t at_ms = from_ms + 10 * static_cast<uint64_t>(i);
    pacing->Want(user);
    if (pacing->TakeDue(kStart + at_ms * kMs))
      wakes.push_back(at_ms);
  }
  return wakes;
}

TEST(WakePacingTest, TheFirstOneComesAtOnce) {
  WakePacing pacing;
  EXPECT_EQ(pacing.MillisecondsToNext(kStart), -1);
  EXPECT_FALSE(pacing.TakeDue(kStart));
  pacing.Want(kModest);
  EXPECT_TRUE(pacing.IsWanted(kModest));
  EXPECT_EQ(pacing.MillisecondsToNext(kStart), 0);
  EXPECT_TRUE(pacing.TakeDue(kStart));
  EXPECT_FALSE(pacing.IsWanted(kModest));
  EXPECT_EQ(pacing.MillisecondsToNext(kStart), -1);
}

TEST(WakePacingTest, WhoWantsManyWaitsLongerAndLonger) {
  WakePacing pacing;
  EXPECT_EQ(WakesOf(kEager, &pacing, 0, 150),
            (std::vector<uint64_t>{0, 50, 150, 350, 750}));
  // In the long run one in a second, or a few more.
  EXPECT_LE(WakesOf(kEager, &pacing, 1500, 6000).size(), 120u);
}

TEST(WakePacingTest, OthersDoNotWaitForHim) {
  WakePacing pacing;
  WakesOf(kEager, &pacing, 0, 100);
  pacing.Want(kEager);
  EXPECT_FALSE(pacing.TakeDue(kStart + 1000 * kMs));
  pacing.Want(kModest);
  EXPECT_TRUE(pacing.TakeDue(kStart + 1000 * kMs));
  EXPECT_FALSE(pacing.IsWanted(kEager));  // one is for all
}

TEST(WakePacingTest, AllTogetherHaveTwentyInASecond) {
  WakePacing pacing;
  size_t wakes = 0;
  for (uint64_t at_ms = 0; at_ms < 1000; at_ms += 5) {
    pacing.Want(static_cast<uid_t>(kModest + at_ms));
    wakes += pacing.TakeDue(kStart + at_ms * kMs) ? 1u : 0u;
  }
  EXPECT_EQ(wakes, 20u);
}

TEST(WakePacingTest, AfterSomeSecondsAllIsForgiven) {
  WakePacing pacing;
  WakesOf(kEager, &pacing, 0, 200);
  EXPECT_EQ(WakesOf(kEager, &pacing, 20'000, 20),
            (std::vector<uint64_t>{20'000, 20'050, 20'150}));
}

TEST(WakePacingTest, RootWaitsForNothingButTheLastOne) {
  WakePacing pacing;
  EXPECT_EQ(WakesOf(0, &pacing, 0, 100).size(), 20u);
  pacing.Want(0);
  EXPECT_EQ(pacing.MillisecondsToNext(kStart + 990 * kMs), 10);
}

}  // namespace
}  // namespace heapprofd
