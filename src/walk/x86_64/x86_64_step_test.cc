// One step from frame to caller, for every kind of rule, on a memory that is a list of
// words.
#include <gtest/gtest.h>

#include <cstdint>

#include "walk/test_words.h"
#include "walk/x86_64/step.h"

namespace heapprofd::x86_64 {
namespace {

constexpr uint64_t kSp = 0x7ffc00001000;
constexpr uint64_t kKey = 0x401234;
constexpr uint64_t kCaller = 0x405678;
constexpr uint64_t kBp = kSp + 0x100;

Cursor Start() {
  return {.key = kKey, .sp = kSp, .bp = kBp};
}

void ExpectCursor(const Cursor& cursor, uint64_t key, uint64_t sp, uint64_t bp) {
  EXPECT_EQ(cursor.key, key);
  EXPECT_EQ(cursor.sp, sp);
  EXPECT_EQ(cursor.bp, bp);
}

TEST(StepTest, AnSpRuleFindsTheReturnAddressBelowTheCfa) {
  const Words memory{{{kSp + 24, kCaller}}};
  Cursor cursor = Start();
  EXPECT_EQ(Step({.kind = RuleKind::kSp, .cfa_offset = 32}, cursor, memory),
            StepResult::kOk);
  ExpectCursor(cursor, kCaller, kSp + 32, kBp);
}

TEST(StepTest, ABpRuleCountsFromRbpAndRestoresIt) {
  const Words memory{{{kBp, kBp + 0x50}, {kBp + 8, kCaller}}};
  Cursor cursor = Start();
  EXPECT_EQ(Step({.kind = RuleKind::kBp, .cfa_offset = 16, .bp_slot = 2}, cursor, memory),
            StepResult::kOk);
  ExpectCursor(cursor, kCaller, kBp + 16, kBp + 0x50);
}

TEST(StepTest, RbpMayBeSavedFarFromTheReturnAddress) {
  const Words memory{{{kSp + 56, kCaller}, {kSp + 64 - 8 * 5, 77}}};
  Cursor cursor = Start();
  EXPECT_EQ(Step({.kind = RuleKind::kSp, .cfa_offset = 64, .bp_slot = 5}, cursor, memory),
            StepResult::kOk);
  ExpectCursor(cursor, kCaller, kSp + 64, 77);
}

TEST(StepTest, ABpDerefRuleReadsTheCfaFromMemory) {
  const uint64_t cfa = kSp + 0x240;
  const Words memory{{{kBp - 8, cfa}, {cfa - 8, kCaller}, {cfa - 8 * 6, 5}}};
  Cursor cursor = Start();
  EXPECT_EQ(
      Step({.kind = RuleKind::kBpDeref, .cfa_offset = -8, .bp_slot = 6}, cursor, memory),
      StepResult::kOk);
  ExpectCursor(cursor, kCaller, cfa, 5);
}

TEST(StepTest, AFunctionThatRealignsItsStackKeepsTheCallersRbpWhereRbpPoints) {
  const uint64_t cfa = kSp + 0x240;
  const Words memory{{{kBp - 24, cfa}, {cfa - 8, kCaller}, {kBp, 5}}};
  Cursor cursor = Start();
  EXPECT_EQ(Step({.kind = RuleKind::kBpDeref, .cfa_offset = -24, .bp_slot = kBpSlotAtBp},
                 cursor, memory),
            StepResult::kOk);
  ExpectCursor(cursor, kCaller, cfa, 5);
}

TEST(StepTest, ASignalRuleTakesTheInterruptedRegistersFromTheUcontext) {
  const Words memory{{{kSp + kUcontextPc, 0x402000},
                      {kSp + kUcontextSp, 0x1000},
                      {kSp + kUcontextBp, 9}}};
  Cursor cursor = Start();
  EXPECT_EQ(Step({.kind = RuleKind::kSignal}, cursor, memory), StepResult::kOk);
  // The interrupted instruction may be the first of its function: the key is behind it.
  // The interrupted stack may lie below an alternate one.
  ExpectCursor(cursor, 0x402001, 0x1000, 9);
}

TEST(StepTest, ASignalFrameThatIsNotReadableIsBadMemory) {
  const Words whole{{{kSp + kUcontextPc, 0x402000},
                     {kSp + kUcontextSp, 0x1000},
                     {kSp + kUcontextBp, 9}}};
  for (const auto& missing : whole.at) {
    Words memory = whole;
    memory.at.erase(missing.first);
    Cursor cursor = Start();
    EXPECT_EQ(Step({.kind = RuleKind::kSignal}, cursor, memory), StepResult::kBadMemory);
    ExpectCursor(cursor, kKey, kSp, kBp);
  }
}

TEST(StepTest, ASignalAtANullPointerCallEndsTheStack) {
  const Words memory{
      {{kSp + kUcontextPc, 0}, {kSp + kUcontextSp, 0x1000}, {kSp + kUcontextBp, 9}}};
  Cursor cursor = Start();
  EXPECT_EQ(Step({.kind = RuleKind::kSignal}, cursor, memory), StepResult::kEnd);
}

TEST(StepTest, RulesWithoutAWayOutSaySo) {
  const Words memory;
  Cursor cursor = Start();
  EXPECT_EQ(Step({.kind = RuleKind::kEnd}, cursor, memory), StepResult::kEnd);
  EXPECT_EQ(Step({.kind = RuleKind::kStop}, cursor, memory), StepResult::kCut);
  EXPECT_EQ(Step({.kind = RuleKind::kUnknown}, cursor, memory), StepResult::kNoRule);
  EXPECT_EQ(Step({.kind = RuleKind::kNoCode}, cursor, memory), StepResult::kNoRule);
  EXPECT_EQ(Step({.kind = RuleKind::kUnwalkable}, cursor, memory), StepResult::kNoRule);
  ExpectCursor(cursor, kKey, kSp, kBp);
}

TEST(StepTest, AReturnAddressThatIsNullEndsTheStack) {
  for (const uint64_t null : {uint64_t{0}, uint64_t{1}, kMinCodeAddress - 1}) {
    const Words memory{{{kSp + 8, null}}};
    Cursor cursor = Start();
    EXPECT_EQ(Step({.kind = RuleKind::kSp, .cfa_offset = 16}, cursor, memory),
              StepResult::kEnd);
  }
  const Words memory{{{kSp + 8, kMinCodeAddress}}};
  Cursor cursor = Start();
  EXPECT_EQ(Step({.kind = RuleKind::kSp, .cfa_offset = 16}, cursor, memory),
            StepResult::kOk);
}

TEST(StepTest, ACfaThatIsNotAboveTheStackPointerIsBadMemory) {
  for (const int32_t offset : {0, -8, -4096, kMinCfaOffset}) {
    const auto cfa = kSp + static_cast<uint64_t>(int64_t{offset});
    const Words memory{{{cfa - 8, kCaller}}};
    Cursor cursor = Start();
    EXPECT_EQ(Step({.kind = RuleKind::kSp, .cfa_offset = offset}, cursor, memory),
              StepResult::kBadMemory);
    ExpectCursor(cursor, kKey, kSp, kBp);
  }
}

TEST(StepTest, ARbpBelowTheStackPointerCannotLeadDownwards) {
  Cursor cursor = Start();
  cursor.bp = kSp - 16;  // CFA would be the stack pointer itself
  const Words memory{{{kSp - 8, kCaller}, {kSp - 16, kSp - 64}}};
  EXPECT_EQ(Step({.kind = RuleKind::kBp, .cfa_offset = 16, .bp_slot = 2}, cursor, memory),
            StepResult::kBadMemory);
}

TEST(StepTest, ACfaFromMemoryMustMoveUpToo) {
  for (const uint64_t cfa : {kSp, kSp - 8, uint64_t{0}}) {
    const Words memory{{{kBp - 8, cfa}, {cfa - 8, kCaller}}};
    Cursor cursor = Start();
    EXPECT_EQ(Step({.kind = RuleKind::kBpDeref, .cfa_offset = -8}, cursor, memory),
              StepResult::kBadMemory);
  }
}

TEST(StepTest, AMisalignedCfaIsBadMemory) {
  Cursor cursor = Start();
  cursor.bp = kSp + 0x101;
  const Words memory{{{cursor.bp + 8, kCaller}}};
  EXPECT_EQ(Step({.kind = RuleKind::kBp, .cfa_offset = 16}, cursor, memory),
            StepResult::kBadMemory);
}

TEST(StepTest, UnreadableSlotsAreBadMemory) {
  Cursor cursor = Start();
  EXPECT_EQ(Step({.kind = RuleKind::kSp, .cfa_offset = 16}, cursor, Words{}),
            StepResult::kBadMemory);
  EXPECT_EQ(Step({.kind = RuleKind::kBpDeref, .cfa_offset = -8}, cursor, Words{}),
            StepResult::kBadMemory);
  const Words without_bp{{{kSp + 24, kCaller}}};
  EXPECT_EQ(
      Step({.kind = RuleKind::kSp, .cfa_offset = 32, .bp_slot = 3}, cursor, without_bp),
      StepResult::kBadMemory);
  ExpectCursor(cursor, kKey, kSp, kBp);
}

TEST(StepTest, RegistersThatOverflowAreBadMemoryAndNotUndefined) {
  const Words memory;
  for (const uint64_t value : {uint64_t{0}, UINT64_MAX, UINT64_MAX - 7}) {
    for (const RuleKind kind :
         {RuleKind::kSp, RuleKind::kBp, RuleKind::kBpDeref, RuleKind::kSignal}) {
      for (const int32_t offset : {kMinCfaOffset, -8, 8, kMaxCfaOffset}) {
        Cursor cursor{.key = kKey, .sp = value, .bp = value};
        EXPECT_EQ(Step({.kind = kind, .cfa_offset = offset, .bp_slot = kMaxBpSlot},
                       cursor, memory),
                  StepResult::kBadMemory);
      }
    }
  }
}

}  // namespace
}  // namespace heapprofd::x86_64
