#include "symbolize/range_map.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace heapprofd {
namespace {

TEST(RangeMapTest, AddressesOutsideOfEveryRangeAreUnknown) {
  RangeMap<int> map;
  map.Add(10, 20, 1);
  map.Add(30, 40, 2);
  map.Add(25, 25, 3);  // empty
  map.Build();
  EXPECT_EQ(map.Find(9), std::nullopt);
  EXPECT_EQ(map.Find(10), 1);
  EXPECT_EQ(map.Find(19), 1);
  EXPECT_EQ(map.Find(20), std::nullopt);
  EXPECT_EQ(map.Find(25), std::nullopt);
  EXPECT_EQ(map.Find(39), 2);
  EXPECT_EQ(map.Find(40), std::nullopt);
}

TEST(RangeMapTest, TheInnerRangeWinsAndTheOuterComesBackBehindIt) {
  RangeMap<int> map;
  map.Add(0, 100, 1);
  map.Add(40, 60, 2);
  map.Add(50, 55, 3);
  map.Build();
  EXPECT_EQ(map.Find(39), 1);
  EXPECT_EQ(map.Find(49), 2);
  EXPECT_EQ(map.Find(54), 3);
  EXPECT_EQ(map.Find(55), 2);
  EXPECT_EQ(map.Find(60), 1);
}

TEST(RangeMapTest, OfEqualRangesTheFirstAddedWins) {
  RangeMap<int> map;
  map.Add(0, 10, 1);
  map.Add(0, 10, 2);
  map.Build();
  EXPECT_EQ(map.Find(5), 1);
}

struct Range {
  uint64_t start;
  uint64_t end;
};

// The rule of the header, said plainly: the last start, then the earliest end, then the
// first added.
std::optional<size_t> FindSlowly(const std::vector<Range>& ranges, uint64_t address) {
  std::optional<size_t> best;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const Range& range = ranges[i];
    if (address < range.start || address >= range.end)
      continue;
    if (!best || range.start > ranges[*best].start ||
        (range.start == ranges[*best].start && range.end < ranges[*best].end))
      best = i;
  }
  return best;
}

TEST(RangeMapTest, RandomOverlappingRangesAgreeWithASlowSearch) {
  std::mt19937 random(20240607);
  for (int round = 0; round < 300; ++round) {
    std::vector<Range> ranges(1 + random() % 20);
    RangeMap<size_t> map;
    for (size_t i = 0; i < ranges.size(); ++i) {
      const uint64_t start = random() % 50;
      ranges[i] = {.start = start, .end = start + random() % 20};
      map.Add(ranges[i].start, ranges[i].end, i);
    }
    map.Build();
    for (uint64_t address = 0; address < 75; ++address)
      ASSERT_EQ(map.Find(address), FindSlowly(ranges, address))
          << round << ": " << address;
  }
}

}  // namespace
}  // namespace heapprofd
