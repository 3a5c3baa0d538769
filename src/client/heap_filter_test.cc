#include "client/heap_filter.h"

#include <gtest/gtest.h>

#include <unordered_set>

namespace heapprofd {
namespace {

TEST(FilterKeyTest, TheSameNumberInTwoHeapsIsTwoKeys) {
  std::unordered_set<uint64_t> keys;
  size_t count = 0;
  for (unsigned heap = 1; heap < kMaxHeaps; ++heap) {
    for (const uint64_t number :
         {uint64_t{0}, uint64_t{1}, uint64_t{7}, uint64_t{8}, uint64_t{0x7f1234567890},
          uint64_t{0x555555555550}, UINT64_MAX}) {
      keys.insert(FilterKey({.address = number, .heap_id = static_cast<uint8_t>(heap)}));
      ++count;
    }
  }
  EXPECT_EQ(keys.size(), count);
}

TEST(FilterKeyTest, NumbersThatAreNoAddressesAreKeptApart) {
  std::unordered_set<uint64_t> keys;
  for (uint64_t number = 0; number < 100'000; ++number)
    keys.insert(FilterKey({.address = number, .heap_id = 3}));
  EXPECT_EQ(keys.size(), 100'000u);
  for (const uint64_t key : keys)
    EXPECT_TRUE(key < uint64_t{1} << 47 && key % 8 == 0);  // exact in the filter
}

TEST(FilterKeyTest, MallocsKeysAreItsAddresses) {
  EXPECT_EQ(FilterKey({.address = 0x1230}), 0x1230u);
}

}  // namespace
}  // namespace heapprofd
