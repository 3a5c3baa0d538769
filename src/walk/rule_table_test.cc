// The rule table against std::map: a hit must be exact, a miss is only allowed when a
// bucket was full.
#include "walk/rule_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <unordered_map>
#include <vector>

#include "walk/rule_writer.h"
#include "walk/test_rules.h"

namespace heapprofd {
namespace {

constexpr Rule kRule = kFramePointerRule;

Rule RuleOf(int n) {
  return Rule{.kind = RuleKind::kBp, .cfa_offset = kFrameUnit * n};
}

// The n-th key of one bucket: what is added above the bucket bits is taken back below
// them (the index is a fold of the key).
uint64_t KeyOfSameBucket(uint64_t n) {
  const uint64_t low = (0x1234 ^ n) % kRuleBuckets;
  return n << kMaxRuleBucketBits | low;
}

TEST(RuleTableTest, AnEmptyTableKnowsNoKey) {
  const auto table = std::make_unique<RuleTable>();
  RuleWriter writer(table.get());
  for (const uint64_t key :
       {uint64_t{0}, uint64_t{1}, uint64_t{0x401000}, kMaxKey - 1, kMaxKey, UINT64_MAX})
    EXPECT_EQ(table->Find(key), Rule{}) << key;
}

TEST(RuleTableTest, RandomInsertionsAnswerLikeAMapWhileNoBucketIsFull) {
  const auto table = std::make_unique<RuleTable>();
  RuleWriter writer(table.get());
  std::map<uint64_t, Rule> model;
  std::mt19937_64 random(7);
  for (int i = 0; i < 15'000; ++i) {  // 1.8 keys for each bucket of 8
    const uint64_t key = random() % (kMaxKey - 1) + 1;
    const Rule rule = RuleOf(static_cast<int>(random() % 1000) + 1);
    writer.Insert(key, rule);
    model[key] = rule;
    if (i % 3 == 0) {  // a later insertion of a known key replaces its rule
      const Rule other = RuleOf(static_cast<int>(random() % 1000) + 1);
      writer.Insert(key, other);
      model[key] = other;
    }
  }
  size_t lost = 0;
  for (const auto& [key, rule] : model) {
    const Rule found = table->Find(key);
    if (found == Rule{})
      ++lost;
    else
      ASSERT_EQ(found, rule) << key;
  }
  EXPECT_LE(lost, model.size() / 1000);  // P(9 or more in a bucket) is about 2e-4
  for (int i = 0; i < 200'000; ++i) {
    const uint64_t key = random();
    if (!model.contains(key % kMaxKey)) {
      ASSERT_EQ(table->Find(key % kMaxKey), Rule{}) << key;
    }
  }
}

TEST(RuleTableTest, AHitIsExactAlsoForAMillionKeysInAFullTable) {
  const auto table = std::make_unique<RuleTable>();
  RuleWriter writer(table.get());
  std::unordered_map<uint64_t, Rule> model;
  std::mt19937_64 random(11);
  std::vector<uint64_t> keys;
  for (int i = 0; i < 300'000; ++i) {
    // Return addresses of a program with several large modules: dense and clustered.
    const uint64_t key =
        0x7f0000000000 + (random() % 8 << 32) + random() % 100'000 * (1 + random() % 3);
    const Rule rule = RuleOf(i % 10'000 + 1);
    writer.Insert(key, rule);
    model[key] = rule;
    keys.push_back(key);
  }
  size_t hits = 0;
  for (const uint64_t key : keys) {
    const Rule found = table->Find(key);
    if (found == Rule{})
      continue;
    ++hits;
    ASSERT_EQ(found, model[key]) << key;
  }
  EXPECT_GE(hits, size_t{kRuleBuckets} * kRulesPerBucket / 2);
}

TEST(RuleTableTest, ABucketHoldsEightKeys) {
  const auto table = std::make_unique<RuleTable>();
  RuleWriter writer(table.get());
  for (uint64_t n = 1; n <= kRulesPerBucket; ++n)
    writer.Insert(KeyOfSameBucket(n), RuleOf(static_cast<int>(n)));
  for (uint64_t n = 1; n <= kRulesPerBucket; ++n)
    EXPECT_EQ(table->Find(KeyOfSameBucket(n)), RuleOf(static_cast<int>(n))) << n;
}

TEST(RuleTableTest, AFullBucketTakesTheNewKeyAndLosesOneOld) {
  const auto table = std::make_unique<RuleTable>();
  RuleWriter writer(table.get());
  for (uint64_t n = 1; n <= 100; ++n) {
    writer.Insert(KeyOfSameBucket(n), RuleOf(static_cast<int>(n)));
    ASSERT_EQ(table->Find(KeyOfSameBucket(n)), RuleOf(static_cast<int>(n))) << n;
    uint64_t held = 0;
    for (uint64_t old = 1; old <= n; ++old)
      held += static_cast<uint64_t>(table->Find(KeyOfSameBucket(old)) != Rule{});
    ASSERT_EQ(held, std::min<uint64_t>(n, kRulesPerBucket)) << n;
  }
}

TEST(RuleTableTest, ATableThatGrowsKeepsWhatItHolds) {
  const auto table = std::make_unique<RuleTable>();
  RuleWriter writer(table.get());
  std::mt19937_64 random(5);
  std::map<uint64_t, Rule> model;
  for (int i = 1; i <= 12'000; ++i) {
    const uint64_t key = 0x7f1200000000 + random() % 50'000'000;
    const Rule rule = RuleOf(i);
    writer.Insert(key, rule);
    model[key] = rule;
    if ((i & (i - 1)) != 0 && i % 500 != 0)
      continue;
    size_t lost = 0;
    for (const auto& [known, wanted] : model) {
      const Rule found = table->Find(known);
      lost += static_cast<size_t>(found == Rule{});
      ASSERT_TRUE(found == wanted || found == Rule{}) << known;
    }
    ASSERT_LE(lost, model.size() / 1000) << i;
  }
}

TEST(RuleTableTest, KeysOutsideUserSpaceAreNotStored) {
  const auto table = std::make_unique<RuleTable>();
  RuleWriter writer(table.get());
  for (const uint64_t key : {uint64_t{0}, kMaxKey, kMaxKey + 1, UINT64_MAX}) {
    writer.Insert(key, kRule);
    EXPECT_EQ(table->Find(key), Rule{}) << key;
  }
  for (const uint64_t key : {uint64_t{1}, kMaxKey - 1}) {
    writer.Insert(key, kRule);
    EXPECT_EQ(table->Find(key), kRule) << key;
  }
}

TEST(RuleTableTest, AKeyAboveUserSpaceNeverHitsTheEntryOfOneInside) {
  const auto table = std::make_unique<RuleTable>();
  RuleWriter writer(table.get());
  std::mt19937_64 random(3);
  for (int i = 0; i < 10'000; ++i) {
    const uint64_t key = random() % (kMaxKey - 1) + 1;
    writer.Insert(key, kRule);
    // The client looks up whatever it finds on the stack: the tag must not wrap.
    for (unsigned bit = kAddressBits; bit < 64; ++bit)
      ASSERT_EQ(table->Find(key | uint64_t{1} << bit), Rule{}) << key << " " << bit;
  }
}

TEST(RuleTableTest, AnUnknownRuleIsNotStored) {
  const auto table = std::make_unique<RuleTable>();
  RuleWriter writer(table.get());
  writer.Insert(0x401000, kRule);
  writer.Insert(0x401000, Rule{});
  EXPECT_EQ(table->Find(0x401000), kRule);
}

// The table as a hostile process that has mapped it writes to it.
std::atomic<uint32_t>& DoublingsIn(RuleTable* table) {
  return *reinterpret_cast<std::atomic<uint32_t>*>(table);
}

TEST(RuleTableTest, NoNumberOfBucketsInTheTableLeadsOutOfIt) {
  const auto table = std::make_unique<RuleTable>();
  RuleWriter writer(table.get());
  std::mt19937_64 random(13);
  for (const uint32_t doublings : {4u, 8u, 12u, 30u, 54u, UINT32_MAX}) {
    DoublingsIn(table.get()).store(doublings);
    for (int i = 0; i < 1000; ++i) {
      const uint64_t key = random() % (kMaxKey - 1) + 1;
      EXPECT_LT(table->PlaceOf(key), kRuleBuckets);
      EXPECT_EQ(table->Find(key), Rule{});
      writer.Insert(key, kRule);
    }
    writer.Clear();
  }
}

TEST(RuleTableTest, WhoeverWritesToTheTableKeepsNoWriterFromItsEnd) {
  const auto table = std::make_unique<RuleTable>();
  RuleWriter writer(table.get());
  std::mt19937_64 random(17);
  for (int i = 0; i < 50'000; ++i) {
    DoublingsIn(table.get()).store(static_cast<uint32_t>(random()));
    auto* const words = reinterpret_cast<std::atomic<uint64_t>*>(table.get());
    for (int j = 0; j < 8; ++j)
      words[random() % (sizeof(RuleTable) / 8)].store(random());
    writer.Insert(random() % kMaxKey, kRule);
  }
}

TEST(RuleTableTest, ClearForgetsEverythingAndTheTableCanBeFilledAgain) {
  const auto table = std::make_unique<RuleTable>();
  RuleWriter writer(table.get());
  for (int round = 1; round <= 3; ++round) {
    for (uint64_t key = 1; key <= 1000; ++key)
      writer.Insert(key * 4096, RuleOf(round));
    for (uint64_t key = 1; key <= 1000; ++key)
      ASSERT_EQ(table->Find(key * 4096), RuleOf(round));
    writer.Clear();
    for (uint64_t key = 1; key <= 1000; ++key)
      ASSERT_EQ(table->Find(key * 4096), Rule{});
  }
}

}  // namespace
}  // namespace heapprofd
