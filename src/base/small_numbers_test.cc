#include "base/small_numbers.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace heapprofd {
namespace {

// `limit`: of the numbers; the rarer large ones are, the later they come.
void CompareWithVector(uint32_t limit, uint32_t seed) {
  std::mt19937 random(seed);
  SmallNumbers got;
  std::vector<uint32_t> want;
  const auto number = [&] {
    return random() % 100 == 0 ? static_cast<uint32_t>(random() % limit)
                               : static_cast<uint32_t>(random() % 100);
  };
  for (int i = 0; i < 3000; ++i) {
    if (want.empty() || random() % 2 == 0) {
      want.push_back(number());
      got.push_back(want.back());
    } else {
      const size_t row = random() % want.size();
      want[row] = number();
      got.Set(row, want[row]);
    }
  }
  ASSERT_EQ(got.size(), want.size());
  for (size_t row = 0; row < want.size(); ++row)
    EXPECT_EQ(got[row], want[row]);
}

TEST(SmallNumbersTest, AreThoseThatWerePutInWhetherAllAreSmallOrNot) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    CompareWithVector(1 << 16, seed);
    CompareWithVector((1 << 16) + 200, seed);
    CompareWithVector(UINT32_MAX, seed);
  }
}

TEST(SmallNumbersTest, TheLargestOfBothKindsAreKept) {
  SmallNumbers numbers;
  numbers.push_back(UINT16_MAX);
  EXPECT_EQ(numbers[0], UINT16_MAX);
  numbers.Set(0, UINT32_MAX);
  EXPECT_EQ(numbers[0], UINT32_MAX);
  numbers.push_back(UINT16_MAX + 1);
  EXPECT_EQ(numbers[1], UINT16_MAX + 1u);
}

}  // namespace
}  // namespace heapprofd
