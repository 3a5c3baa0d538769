// A rule crosses from engine to client as 26 bits: nothing of it may be lost on the way.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>

#include "walk/x86_64/rule.h"

namespace heapprofd::x86_64 {
namespace {

constexpr uint32_t kAllBits = (1u << kRuleBits) - 1;

constexpr RuleKind kKinds[] = {RuleKind::kUnknown, RuleKind::kSp,  RuleKind::kBp,
                               RuleKind::kBpDeref, RuleKind::kEnd, RuleKind::kSignal,
                               RuleKind::kNoCode,  RuleKind::kStop};

TEST(RuleTest, EveryKindOffsetAndSlotSurvivesTheRoundTrip) {
  for (const RuleKind kind : kKinds) {
    for (const int32_t offset : {kMinCfaOffset, kMinCfaOffset + 8, -8, 0, 8, 16, 4096,
                                 kMaxCfaOffset - 8, kMaxCfaOffset}) {
      for (const uint32_t slot : {0u, 2u, 3u, 31u, 32u, kMaxBpSlot}) {
        const Rule rule{.kind = kind, .cfa_offset = offset, .bp_slot = slot};
        ASSERT_TRUE(IsEncodable(rule)) << offset << " " << slot;
        ASSERT_EQ(EncodeRule(rule) & ~kAllBits, 0u);
        ASSERT_EQ(DecodeRule(EncodeRule(rule)), rule) << offset << " " << slot;
      }
    }
  }
}

TEST(RuleTest, EveryCfaOffsetSurvivesTheRoundTrip) {
  for (int32_t offset = kMinCfaOffset; offset <= kMaxCfaOffset; offset += 8) {
    const Rule rule{.kind = RuleKind::kBp, .cfa_offset = offset, .bp_slot = 2};
    ASSERT_EQ(DecodeRule(EncodeRule(rule)), rule) << offset;
  }
}

TEST(RuleTest, AnyTwentySixBitsDecodeToARuleThatEncodesToThem) {
  std::mt19937 random(1);
  for (int i = 0; i < 1'000'000; ++i) {
    const uint32_t bits = static_cast<uint32_t>(random()) & kAllBits;
    const Rule rule = DecodeRule(bits);
    ASSERT_EQ(EncodeRule(rule), bits);
    ASSERT_GE(rule.cfa_offset, kMinCfaOffset);
    ASSERT_LE(rule.cfa_offset, kMaxCfaOffset);
    ASSERT_LE(rule.bp_slot, kMaxBpSlot);
  }
}

TEST(RuleTest, TheDefaultRuleIsUnknownAndAllZero) {
  EXPECT_EQ(EncodeRule(Rule{}), 0u);
  EXPECT_EQ(DecodeRule(0).kind, RuleKind::kUnknown);
}

TEST(RuleTest, RulesThatTwentySixBitsCannotHoldAreNotEncodable) {
  const Rule good{.kind = RuleKind::kSp, .cfa_offset = 16, .bp_slot = 2};
  ASSERT_TRUE(IsEncodable(good));
  for (const int32_t offset :
       {4, 12, -4, kMaxCfaOffset + 8, kMinCfaOffset - 8, INT32_MAX, INT32_MIN}) {
    Rule rule = good;
    rule.cfa_offset = offset;
    EXPECT_FALSE(IsEncodable(rule)) << offset;
  }
  for (const uint32_t slot : {kMaxBpSlot + 1, UINT32_MAX}) {
    Rule rule = good;
    rule.bp_slot = slot;
    EXPECT_FALSE(IsEncodable(rule)) << slot;
  }
}

TEST(RuleTest, TheSlotThatRbpPointsToSurvivesTheRoundTrip) {
  const Rule rule{.kind = RuleKind::kBpDeref, .cfa_offset = -24, .bp_slot = kBpSlotAtBp};
  ASSERT_TRUE(IsEncodable(rule));
  EXPECT_EQ(DecodeRule(EncodeRule(rule)), rule);
}

TEST(RuleTest, RbpCannotLieWhereTheReturnAddressIs) {
  EXPECT_FALSE(IsEncodable(Rule{.kind = RuleKind::kSp, .cfa_offset = 16, .bp_slot = 1}));
}

}  // namespace
}  // namespace heapprofd::x86_64
