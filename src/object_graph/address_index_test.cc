#include "object_graph/address_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace heapprofd {
namespace {

void ExpectFound(std::vector<uint64_t> ids) {
  Column<uint64_t> column;
  column.append(ids);
  const AddressIndex index(column);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  ASSERT_EQ(index.size(), ids.size());
  for (uint32_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(index.Find(ids[i]), i);
    EXPECT_EQ(index.IdOf(i), ids[i]);
    for (const uint64_t other : {ids[i] - 1, ids[i] + 1, ids[i] + 8, ~ids[i]}) {
      if (!std::binary_search(ids.begin(), ids.end(), other)) {
        EXPECT_EQ(index.Find(other), kNoObject) << std::hex << other;
      }
    }
  }
}

TEST(AddressIndexTest, AddressesInARow) {
  std::vector<uint64_t> ids;
  for (uint64_t i = 0; i < 10'000; ++i)
    ids.push_back(0x7f00'0000'0000 + i * 24);
  ExpectFound(ids);
}

TEST(AddressIndexTest, OneObjectAndNone) {
  ExpectFound({0x1000});
  ExpectFound({0});
  ExpectFound({UINT64_MAX});
  ExpectFound({});
}

TEST(AddressIndexTest, SmallAndOddNumbers) {
  ExpectFound({1, 2, 3, 4, 5, 9, 1000, 70'000});
}

TEST(AddressIndexTest, SeveralFarRangesInAnyOrder) {
  std::vector<uint64_t> ids;
  std::mt19937_64 random(303);
  for (const uint64_t base :
       std::vector<uint64_t>{0x7ffe'0000'0000, 0x1000'0000, 0x5555'0000'0000}) {
    for (int i = 0; i < 30'000; ++i)
      ids.push_back(base + random() % 100'000 * 8);
  }
  ExpectFound(ids);
}

TEST(AddressIndexTest, ScatteredNumbersTakeNoMoreThanSorted) {
  std::vector<uint64_t> ids;
  std::mt19937_64 random(304);
  for (int i = 0; i < 3'000; ++i)
    ids.push_back(random());
  ids.push_back(ids.front());
  ExpectFound(ids);
}

}  // namespace
}  // namespace heapprofd
