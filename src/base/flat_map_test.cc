#include "base/flat_map.h"

#include <gtest/gtest.h>

#include <random>
#include <unordered_map>

namespace heapprofd {
namespace {

// Few keys, so that all of them come and go many times; 0 is among them.
TEST(FlatMap, HoldsWhatAMapHolds) {
  std::mt19937_64 random(1);
  for (const uint64_t keys : {7u, 500u, 20'000u}) {
    FlatMap<uint32_t> map;
    std::unordered_map<uint64_t, uint32_t> model;
    for (uint32_t i = 0; i < 200'000; ++i) {
      const uint64_t key = random() % keys * 16;
      if (random() % 2 == 0) {
        const auto [value, is_new] = map.Insert(key, i);
        const auto [entry, is_new_in_model] = model.try_emplace(key, i);
        ASSERT_EQ(is_new, is_new_in_model);
        ASSERT_EQ(*value, entry->second);
      } else {
        ASSERT_EQ(map.Erase(key), model.erase(key) == 1);
      }
      ASSERT_EQ(map.size(), model.size());
    }
    for (uint64_t key = 0; key < keys * 16; ++key) {
      const uint32_t* value = map.Find(key);
      const auto entry = model.find(key);
      ASSERT_EQ(value != nullptr, entry != model.end()) << key;
      ASSERT_EQ(map.Contains(key), value != nullptr);
      ASSERT_TRUE(value == nullptr || *value == entry->second);
    }
  }
}

TEST(FlatMap, AnEmptyOneHoldsNothing) {
  FlatMap<uint32_t> map;
  map.Prefetch(5);
  EXPECT_EQ(map.Find(0), nullptr);
  EXPECT_EQ(map.Find(5), nullptr);
  EXPECT_FALSE(map.Erase(0));
  EXPECT_FALSE(map.Erase(5));
}

TEST(FlatMap, GivesMemoryBackWhenLittleIsLeft) {
  FlatMap<uint32_t> map;
  constexpr uint32_t kMany = 100'000;
  for (uint32_t key = 1; key <= kMany; ++key)
    map.Insert(key, key);
  const size_t most = map.bytes();
  for (uint32_t key = 101; key <= kMany; ++key)
    ASSERT_TRUE(map.Erase(key));
  EXPECT_LT(map.bytes(), most / 50);
  for (uint32_t key = 1; key <= 100; ++key)
    ASSERT_EQ(*map.Find(key), key);
}

TEST(FlatMap, SaysBeforeItGrowsHowMuch) {
  FlatMap<uint32_t> map;
  for (uint32_t key = 1; key <= 10'000; ++key) {
    const size_t before = map.bytes();
    const size_t growth = map.growth_bytes();
    map.Insert(key, key);
    ASSERT_EQ(map.bytes(), growth != 0 ? growth : before);
  }
}

TEST(FlatMap, IsEmptyWhenMoved) {
  FlatMap<uint32_t> from;
  from.Insert(0, 1);
  from.Insert(9, 2);
  FlatMap<uint32_t> to = std::move(from);
  EXPECT_EQ(from.size(), 0u);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(from.Find(9), nullptr);
  EXPECT_EQ(*to.Find(0), 1u);
  EXPECT_EQ(*to.Find(9), 2u);
  EXPECT_TRUE(from.Insert(9, 3).second);
}

TEST(FlatMap, AllOfItIsSeenPartByPart) {
  FlatMap<uint32_t> map;
  for (uint32_t i = 1; i <= 1000; ++i)
    map.Insert(i, i);
  uint64_t sum = 0;
  size_t at = 0;
  while (at < map.place_count())
    at = map.VisitSome(at, 100, [&sum](uint64_t key, uint32_t) { sum += key; });
  EXPECT_EQ(sum, 500'500u);
  const auto is_not_called = [](uint64_t, uint32_t) { ADD_FAILURE(); };
  EXPECT_EQ(map.VisitSome(at + 5, 100, is_not_called), at + 5);  // it was larger
  EXPECT_EQ(FlatMap<uint32_t>().VisitSome(0, 100, is_not_called), 0u);
}

TEST(FlatMap, MergingKeepsWhatIsThere) {
  FlatMap<uint32_t> map;
  FlatMap<uint32_t> other;
  map.Insert(1, 10);
  other.Insert(0, 5);
  other.Insert(1, 11);
  other.Insert(2, 12);
  map.Merge(other);
  EXPECT_EQ(map.size(), 3u);
  EXPECT_EQ(*map.Find(0), 5u);
  EXPECT_EQ(*map.Find(1), 10u);
  EXPECT_EQ(*map.Find(2), 12u);
  EXPECT_EQ(other.size(), 0u);
}

}  // namespace
}  // namespace heapprofd
