#include "engine/fair_turn.h"

#include <gtest/gtest.h>

namespace heapprofd {
namespace {

constexpr uint64_t kMs = 1'000'000;

TEST(FairTurnTest, TwoUsersShareATurn) {
  FairTurn turn;
  turn.Begin(0, 30 * kMs, 2);
  EXPECT_EQ(turn.Left(1, 0), 15 * kMs);
  turn.Note(1, 15 * kMs);
  EXPECT_EQ(turn.Left(1, 15 * kMs), 0u);
  EXPECT_EQ(turn.Left(2, 15 * kMs), 15 * kMs);
}

TEST(FairTurnTest, WhoHasTakenMoreThanHisShareWaitsUntilTheOthersHaveHadTheirs) {
  FairTurn turn;
  uint64_t now = 0;
  turn.Begin(now, now + 30 * kMs, 2);
  turn.Note(1, 60 * kMs);  // one step that could not be interrupted
  now += 60 * kMs;
  EXPECT_EQ(turn.Left(2, now), 0u);
  for (int i = 0; i < 3; ++i) {
    turn.Begin(now, now + 30 * kMs, 2);
    EXPECT_EQ(turn.Left(1, now), 0u) << i;
    EXPECT_GT(turn.Left(2, now), 0u) << i;
    now += 30 * kMs;
  }
  turn.Begin(now, now + 30 * kMs, 2);
  EXPECT_GT(turn.Left(1, now), 0u);
}

TEST(FairTurnTest, WhoIsAloneHasAllOfIt) {
  FairTurn turn;
  turn.Begin(0, 30 * kMs, 1);
  turn.Note(1, 100 * kMs);
  turn.Begin(100 * kMs, 130 * kMs, 1);
  EXPECT_EQ(turn.Left(1, 100 * kMs), 30 * kMs);
}

TEST(FairTurnTest, ATurnThatIsOverIsOverForAll) {
  FairTurn turn;
  turn.Begin(10, 10, 2);
  EXPECT_EQ(turn.Left(1, 10), 0u);
}

}  // namespace
}  // namespace heapprofd
