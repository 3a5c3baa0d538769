#include "record/look_turns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace heapprofd {
namespace {

// The places that are looked at in a dump that has time for so many.
std::vector<size_t> LookedAt(LookTurns& turns,
                             const std::vector<pid_t>& order,
                             size_t time_for) {
  turns.Begin(order);
  std::vector<size_t> places;
  for (size_t place = 0; place < order.size(); ++place) {
    if (!turns.Has(place))
      continue;
    if (places.size() == time_for)
      turns.Miss(place);
    else
      places.push_back(place);
  }
  return places;
}

TEST(LookTurnsTest, AllWhereThereIsTime) {
  LookTurns turns;
  for (int dump = 0; dump < 3; ++dump)
    EXPECT_EQ(LookedAt(turns, {30, 10, 20}, 3), (std::vector<size_t>{0, 1, 2}));
}

TEST(LookTurnsTest, TheNextDumpBeginsWithTheFirstThatWasNotReached) {
  LookTurns turns;
  const std::vector<pid_t> order = {50, 10, 40, 20, 30};
  EXPECT_EQ(LookedAt(turns, order, 2), (std::vector<size_t>{0, 1}));
  EXPECT_EQ(LookedAt(turns, order, 2), (std::vector<size_t>{2, 3}));
  EXPECT_EQ(LookedAt(turns, order, 2), (std::vector<size_t>{4}));
  EXPECT_EQ(LookedAt(turns, order, 2), (std::vector<size_t>{0, 1}));
}

TEST(LookTurnsTest, OthersComeAndGo) {
  LookTurns turns;
  EXPECT_EQ(LookedAt(turns, {1, 2, 3, 4}, 2), (std::vector<size_t>{0, 1}));
  EXPECT_EQ(LookedAt(turns, {2, 3, 4, 5}, 3), (std::vector<size_t>{1, 2, 3}));
  EXPECT_EQ(LookedAt(turns, {1, 2, 3, 4}, 2), (std::vector<size_t>{0, 1}));
  EXPECT_EQ(LookedAt(turns, {1, 2, 4}, 3), (std::vector<size_t>{0, 1, 2}))
      << "who was next is gone";
}

TEST(LookTurnsTest, WhoNeedsAllOfTheTimeDoesNotHaveTheTimeOfOthers) {
  LookTurns turns;
  const std::vector<pid_t> order = {1, 2, 3};
  std::vector<size_t> first;
  for (int dump = 0; dump < 4; ++dump) {
    turns.Begin(order);
    size_t place = 0;
    while (!turns.Has(place))
      ++place;
    first.push_back(place);
    for (; place < order.size(); ++place)
      turns.Miss(place);
  }
  EXPECT_EQ(first, (std::vector<size_t>{0, 1, 2, 0}));
}

TEST(LookTurnsTest, NoProcesses) {
  LookTurns turns;
  EXPECT_TRUE(LookedAt(turns, {}, 1).empty());
}

}  // namespace
}  // namespace heapprofd
