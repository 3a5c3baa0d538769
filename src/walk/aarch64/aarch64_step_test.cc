// One step from frame to caller, for every kind of rule, on a memory that is a list of
// words.
#include <gtest/gtest.h>

#include <cstdint>

#include "walk/aarch64/step.h"
#include "walk/test_words.h"

namespace heapprofd::aarch64 {
namespace {

constexpr uint64_t kSp = 0xffffc0001000;
constexpr uint64_t kKey = 0x401234;
constexpr uint64_t kCaller = 0x405678;
constexpr uint64_t kBp = kSp + 0x100;
constexpr Rule kFrame{
    .kind = RuleKind::kSp, .cfa_offset = 48, .bp_slot = 6, .return_slot = 5};
constexpr Rule kLeaf{.kind = RuleKind::kSp, .cfa_offset = 16};

Cursor Start() {
  return {.key = kKey, .sp = kSp, .bp = kBp};
}

Words Interrupted() {
  return {{{kSp + kUcontextPc, 0x402000},
           {kSp + kUcontextSp, 0x1000},
           {kSp + kUcontextBp, 9},
           {kSp + kUcontextLink, kCaller}}};
}

TEST(Aarch64StepTest, AFrameRecordAtTheBottomOfAFrameIsFound) {
  const Words memory{{{kSp, kBp + 0x50}, {kSp + 8, kCaller}}};
  Cursor cursor = Start();
  EXPECT_EQ(Step(kFrame, cursor, memory), StepResult::kOk);
  EXPECT_EQ(cursor, (Cursor{.key = kCaller, .sp = kSp + 48, .bp = kBp + 0x50}));
}

TEST(Aarch64StepTest, AReturnAddressThatIsSavedAloneLeavesTheFramePointerAsItIs) {
  const Words memory{{{kSp, kCaller}}};
  Cursor cursor = Start();
  EXPECT_EQ(
      Step({.kind = RuleKind::kSp, .cfa_offset = 16, .return_slot = 2}, cursor, memory),
      StepResult::kOk);
  EXPECT_EQ(cursor, (Cursor{.key = kCaller, .sp = kSp + 16, .bp = kBp}));
}

TEST(Aarch64StepTest, ABpRuleCountsFromTheFramePointer) {
  const Words memory{{{kBp, 77}, {kBp + 8, kCaller}}};
  for (const int32_t size : {16, 64}) {
    const auto words = static_cast<uint32_t>(size / 8);
    Cursor cursor = Start();
    EXPECT_EQ(Step({.kind = RuleKind::kBp,
                    .cfa_offset = size,
                    .bp_slot = words,
                    .return_slot = words - 1},
                   cursor, memory),
              StepResult::kOk);
    EXPECT_EQ(
        cursor,
        (Cursor{.key = kCaller, .sp = kBp + static_cast<uint64_t>(size), .bp = 77}));
  }
}

// What a frame record does not say: where its frame ends.
TEST(Aarch64StepTest, BehindAFrameRecordNothingIsCountedFromTheStackPointer) {
  const uint64_t next = kBp + 0x80;
  const Words memory{
      {{kBp, next}, {kBp + 8, kCaller}, {next, 77}, {next + 8, kCaller + 4}}};
  Cursor cursor = Start();
  ASSERT_EQ(Step(kFramePointerRule, cursor, memory), StepResult::kOk);
  const Cursor behind{.key = kCaller, .sp = (kBp + 16) | kSpIsBound, .bp = next};
  EXPECT_EQ(cursor, behind);
  EXPECT_EQ(Step(kFrame, cursor, memory), StepResult::kCut);
  EXPECT_EQ(Step({.kind = RuleKind::kSignal}, cursor, memory), StepResult::kCut);
  EXPECT_EQ(cursor, behind);
  Cursor by_record = behind;
  EXPECT_EQ(Step(kFramePointerRule, by_record, memory), StepResult::kOk);
  EXPECT_EQ(by_record.sp, (next + 16) | kSpIsBound);
  constexpr Rule kByBp{
      .kind = RuleKind::kBp, .cfa_offset = 32, .bp_slot = 4, .return_slot = 3};
  EXPECT_EQ(Step(kByBp, cursor, memory), StepResult::kOk);
  EXPECT_EQ(cursor, (Cursor{.key = kCaller + 4, .sp = next + 32, .bp = 77}));
}

TEST(Aarch64StepTest, SignaturesOfReturnAddressesAreTakenOff) {
  for (const uint64_t signature :
       {uint64_t{0xab7f} << 48, uint64_t{0xff} << 56, uint64_t{1} << 48}) {
    const Words memory{{{kSp, kBp}, {kSp + 8, kCaller | signature}}};
    Cursor cursor = Start();
    EXPECT_EQ(Step(kFrame, cursor, memory), StepResult::kOk);
    EXPECT_EQ(cursor.key, kCaller);
  }
}

TEST(Aarch64StepTest, ASignalRuleTakesTheInterruptedRegistersFromTheUcontext) {
  Cursor cursor = Start();
  EXPECT_EQ(Step({.kind = RuleKind::kSignal}, cursor, Interrupted()), StepResult::kOk);
  EXPECT_EQ(cursor, (Cursor{.key = 0x402001, .sp = 0x1000, .bp = 9, .link = kCaller}));
}

TEST(Aarch64StepTest, ASignalFrameThatIsNotReadableIsBadMemory) {
  const Words whole = Interrupted();
  for (const auto& missing : whole.at) {
    Words memory = whole;
    memory.at.erase(missing.first);
    Cursor cursor = Start();
    EXPECT_EQ(Step({.kind = RuleKind::kSignal}, cursor, memory), StepResult::kBadMemory);
    EXPECT_EQ(cursor, Start());
  }
}

TEST(Aarch64StepTest, ASignalAtANullPointerCallEndsTheStack) {
  Words memory = Interrupted();
  memory.at[kSp + kUcontextPc] = 0;
  Cursor cursor = Start();
  EXPECT_EQ(Step({.kind = RuleKind::kSignal}, cursor, memory), StepResult::kEnd);
}

TEST(Aarch64StepTest, AnInterruptedLeafFunctionReturnsToWhereX30Says) {
  Cursor cursor{.key = 0x402001, .sp = kSp, .bp = kBp, .link = kCaller};
  EXPECT_EQ(Step(kLeaf, cursor, Words{}), StepResult::kOk);
  EXPECT_EQ(cursor, (Cursor{.key = kCaller, .sp = kSp + 16, .bp = kBp}));
}

// It has not made room for itself yet.
TEST(Aarch64StepTest, AnInterruptedFunctionMayHaveNoFrame) {
  Cursor cursor{.key = 0x402001, .sp = kSp, .bp = kBp, .link = kCaller};
  EXPECT_EQ(Step({.kind = RuleKind::kSp}, cursor, Words{}), StepResult::kOk);
  EXPECT_EQ(cursor, (Cursor{.key = kCaller, .sp = kSp, .bp = kBp}));
}

// x30 is one register: a second function without a saved return address cannot be.
TEST(Aarch64StepTest, AFrameInACallHasNoReturnAddressInX30) {
  Cursor cursor = Start();
  EXPECT_EQ(Step(kLeaf, cursor, Words{}), StepResult::kBadMemory);
  EXPECT_EQ(Step({.kind = RuleKind::kSp}, cursor, Words{}), StepResult::kBadMemory);
  EXPECT_EQ(cursor, Start());
}

TEST(Aarch64StepTest, RulesWithoutAWayOutSaySo) {
  const Words memory;
  Cursor cursor = Start();
  EXPECT_EQ(Step({.kind = RuleKind::kEnd}, cursor, memory), StepResult::kEnd);
  EXPECT_EQ(Step({.kind = RuleKind::kStop}, cursor, memory), StepResult::kCut);
  for (const RuleKind kind :
       {RuleKind::kUnknown, RuleKind::kNoCode, RuleKind::kUnwalkable})
    EXPECT_EQ(Step({.kind = kind}, cursor, memory), StepResult::kNoRule);
  EXPECT_EQ(cursor, Start());
}

TEST(Aarch64StepTest, AReturnAddressThatIsNullEndsTheStack) {
  for (const uint64_t null : {uint64_t{0}, kMinCodeAddress - 1, uint64_t{1} << 48}) {
    const Words memory{{{kSp, kBp}, {kSp + 8, null}}};
    Cursor cursor = Start();
    EXPECT_EQ(Step(kFrame, cursor, memory), StepResult::kEnd) << null;
  }
}

TEST(Aarch64StepTest, AFramePointerThatLeadsDownwardsIsBadMemory) {
  for (const uint64_t bp : {kSp - 16, kSp - 0x1000, uint64_t{0}}) {
    const Words memory{{{bp, 1}, {bp + 8, kCaller}}};
    Cursor cursor = Start();
    cursor.bp = bp;
    EXPECT_EQ(Step(kFramePointerRule, cursor, memory), StepResult::kBadMemory);
  }
}

TEST(Aarch64StepTest, AMisalignedCfaIsBadMemory) {
  Cursor cursor = Start();
  cursor.bp = kBp + 1;
  const Words memory{{{kBp + 1, 0}, {kBp + 9, kCaller}}};
  EXPECT_EQ(Step(kFramePointerRule, cursor, memory), StepResult::kBadMemory);
}

TEST(Aarch64StepTest, UnreadableSlotsAreBadMemory) {
  const Words without_bp{{{kSp + 8, kCaller}}};
  const Words without_return{{{kSp, kBp}}};
  for (const Words& memory : {without_bp, without_return, Words{}}) {
    Cursor cursor = Start();
    EXPECT_EQ(Step(kFrame, cursor, memory), StepResult::kBadMemory);
    EXPECT_EQ(cursor, Start());
  }
}

TEST(Aarch64StepTest, RegistersThatOverflowAreBadMemoryAndNotUndefined) {
  for (const uint64_t value : {UINT64_MAX, UINT64_MAX - 7, UINT64_MAX - 15}) {
    for (const RuleKind kind : {RuleKind::kSp, RuleKind::kBp, RuleKind::kSignal}) {
      for (const int32_t offset : {0, 16, kMaxCfaOffset}) {
        Cursor cursor{.key = kKey, .sp = value, .bp = value};
        EXPECT_EQ(
            Step({.kind = kind, .cfa_offset = offset, .return_slot = 1}, cursor, Words{}),
            (value & kSpIsBound) != 0 && kind != RuleKind::kBp ? StepResult::kCut
                                                               : StepResult::kBadMemory);
      }
    }
  }
}

}  // namespace
}  // namespace heapprofd::aarch64
