// A rule crosses from engine to client as 26 bits: nothing of it may be lost on the way.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>

#include "walk/aarch64/rule.h"

namespace heapprofd::aarch64 {
namespace {

constexpr uint32_t kAllBits = (1u << kRuleBits) - 1;

void ExpectRoundTrip(Rule rule) {
  ASSERT_TRUE(IsEncodable(rule)) << rule.cfa_offset << " " << rule.return_slot;
  ASSERT_EQ(EncodeRule(rule) & ~kAllBits, 0u);
  ASSERT_EQ(DecodeRule(EncodeRule(rule)), rule)
      << rule.cfa_offset << " " << rule.return_slot << " " << rule.bp_slot;
}

TEST(Aarch64RuleTest, EveryKindAndOffsetSurvivesTheRoundTrip) {
  for (const RuleKind kind :
       {RuleKind::kUnknown, RuleKind::kSp, RuleKind::kBp, RuleKind::kEnd,
        RuleKind::kSignal, RuleKind::kNoCode, RuleKind::kStop}) {
    for (int32_t offset = 0; offset <= kMaxCfaOffset; offset += 16)
      ExpectRoundTrip({.kind = kind, .cfa_offset = offset});
  }
}

TEST(Aarch64RuleTest, ReturnAddressesNearEitherEndOfAFrameSurviveTheRoundTrip) {
  for (const int32_t offset : {16, 32, 512, 1024, 1040, 4096, kMaxCfaOffset}) {
    const auto words = static_cast<uint32_t>(offset / 8);
    for (uint32_t slot = 1; slot <= words; ++slot) {
      if (slot > kMaxPlace && words - slot > kMaxPlace)
        continue;
      ExpectRoundTrip({.kind = RuleKind::kSp, .cfa_offset = offset, .return_slot = slot});
      ExpectRoundTrip({.kind = RuleKind::kBp,
                       .cfa_offset = offset,
                       .bp_slot = slot + 1,
                       .return_slot = slot});
    }
  }
}

// The client decodes what it finds in shared memory.
TEST(Aarch64RuleTest, AnyTwentySixBitsDecodeToARule) {
  std::mt19937 random(1);
  for (int i = 0; i < 1'000'000; ++i) {
    const Rule rule = DecodeRule(static_cast<uint32_t>(random()) & kAllBits);
    ASSERT_LE(rule.kind, RuleKind::kStop);
    ASSERT_GE(rule.cfa_offset, 0);
    ASSERT_LE(rule.cfa_offset, kMaxCfaOffset);
    if (IsEncodable(rule)) {
      ASSERT_EQ(DecodeRule(EncodeRule(rule)), rule);
    }
  }
}

TEST(Aarch64RuleTest, TheDefaultRuleIsUnknownAndAllZero) {
  EXPECT_EQ(EncodeRule(Rule{}), 0u);
  EXPECT_EQ(DecodeRule(0), Rule{});
}

TEST(Aarch64RuleTest, TheFramePointerRuleSurvivesTheRoundTrip) {
  ExpectRoundTrip(kFramePointerRule);
}

TEST(Aarch64RuleTest, RulesThatTwentySixBitsCannotHoldAreNotEncodable) {
  const Rule good{
      .kind = RuleKind::kSp, .cfa_offset = 4096, .bp_slot = 2, .return_slot = 1};
  ASSERT_TRUE(IsEncodable(good));
  for (const int32_t offset : {-16, 8, 24, kMaxCfaOffset + 16, INT32_MAX, INT32_MIN}) {
    Rule rule = good;
    rule.cfa_offset = offset;
    EXPECT_FALSE(IsEncodable(rule)) << offset;
  }
  for (const uint32_t slot : {0u, 1u, 3u, UINT32_MAX}) {
    Rule rule = good;
    rule.bp_slot = slot;
    EXPECT_EQ(IsEncodable(rule), slot == 0) << slot;
  }
  for (const uint32_t slot : {kMaxPlace + 1, 512u - kMaxPlace - 1, 513u, UINT32_MAX}) {
    Rule rule = good;
    rule.return_slot = slot;
    rule.bp_slot = 0;
    EXPECT_FALSE(IsEncodable(rule)) << slot;
  }
  EXPECT_FALSE(IsEncodable({.kind = RuleKind::kSp, .cfa_offset = 16, .bp_slot = 1}));
}

}  // namespace
}  // namespace heapprofd::aarch64
