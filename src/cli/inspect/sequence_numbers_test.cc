#include "cli/inspect/sequence_numbers.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace heapprofd {
namespace {

TEST(SequenceNumbersTest, AreThoseOfAMap) {
  SequenceNumbers numbers;
  std::map<std::vector<uint32_t>, uint32_t> expected;
  std::mt19937 random(7);
  for (int i = 0; i < 20'000; ++i) {
    std::vector<uint32_t> sequence(random() % 6);
    for (uint32_t& value : sequence)
      value = static_cast<uint32_t>(random() % 5);
    const auto number =
        expected.try_emplace(sequence, static_cast<uint32_t>(expected.size())).first;
    ASSERT_EQ(numbers.Of(sequence), number->second);
  }
  for (const auto& [sequence, number] : expected)
    EXPECT_TRUE(std::ranges::equal(numbers.At(number), sequence));
}

}  // namespace
}  // namespace heapprofd
