// x86-64: one step from a frame to its caller (walk/step.h).
#pragma once

#include <cstdint>

#include "walk/step_result.h"
#include "walk/x86_64/rule.h"

namespace heapprofd::x86_64 {

// Registers of the frame being left. `key` is the frame's own key (rule.h).
struct Cursor {
  uint64_t key = 0;
  uint64_t sp = 0;
  uint64_t bp = 0;

  friend bool operator==(const Cursor&, const Cursor&) = default;
};

// What records carry of a Cursor beside key, sp and bp: nothing (compare aarch64).
inline constexpr uint64_t LinkOf(const Cursor&) {
  return 0;
}

inline constexpr Cursor WithLink(Cursor cursor, uint64_t /*link*/) {
  return cursor;
}

// What SavedPlaces count from.
inline constexpr uint64_t SavedBase(const Cursor& caller) {
  return caller.sp;
}

// Return addresses are what they are (compare aarch64).
inline constexpr uint64_t WithoutSignature(uint64_t return_address) {
  return return_address;
}

// Return addresses from here on are none: no user code lies there.
inline constexpr uint64_t kMaxCodeAddress = uint64_t{1} << kAddressBits;

// Offsets of the interrupted registers from rsp at the return of a signal handler (x86-64
// Linux: struct rt_sigframe after its return address, i.e. ucontext_t: 40 bytes of
// header, then gregs).
inline constexpr uint64_t kUcontextBp = 40 + 8 * 10;
inline constexpr uint64_t kUcontextSp = 40 + 8 * 15;
inline constexpr uint64_t kUcontextPc = 40 + 8 * 16;

template <typename Memory>
StepResult StepSignal(Cursor& cursor, const Memory& memory) {
  uint64_t pc = 0;
  uint64_t sp = 0;
  uint64_t bp = 0;
  if (!memory.Read(cursor.sp + kUcontextPc, &pc) ||
      !memory.Read(cursor.sp + kUcontextSp, &sp) ||
      !memory.Read(cursor.sp + kUcontextBp, &bp))
    return StepResult::kBadMemory;
  if (pc < kMinCodeAddress)
    return StepResult::kEnd;
  cursor = Cursor{.key = pc + 1, .sp = sp, .bp = bp};
  return StepResult::kOk;
}

template <typename Memory>
StepResult Step(Rule rule, Cursor& cursor, const Memory& memory) {
  uint64_t cfa = 0;
  switch (rule.kind) {
    case RuleKind::kSp:
      cfa = cursor.sp + static_cast<uint64_t>(int64_t{rule.cfa_offset});
      break;
    case RuleKind::kBp:
      cfa = cursor.bp + static_cast<uint64_t>(int64_t{rule.cfa_offset});
      break;
    case RuleKind::kBpDeref:
      if (!memory.Read(cursor.bp + static_cast<uint64_t>(int64_t{rule.cfa_offset}), &cfa))
        return StepResult::kBadMemory;
      break;
    case RuleKind::kSignal:
      return StepSignal(cursor, memory);
    case RuleKind::kUnknown:
    case RuleKind::kEnd:
    case RuleKind::kNoCode:
    case RuleKind::kStop:
    case RuleKind::kUnwalkable:
      return ResultWithoutCaller(rule.kind);
  }
  if (cfa <= cursor.sp || cfa % 8 != 0)
    return StepResult::kBadMemory;  // a caller's frame lies above its callee's
  uint64_t return_address = 0;
  if (!memory.Read(cfa - 8, &return_address))
    return StepResult::kBadMemory;
  const uint64_t bp_address =
      rule.bp_slot == kBpSlotAtBp ? cursor.bp : cfa - 8 * uint64_t{rule.bp_slot};
  if (rule.bp_slot != 0 && !memory.Read(bp_address, &cursor.bp))
    return StepResult::kBadMemory;
  if (return_address < kMinCodeAddress)
    return StepResult::kEnd;
  if (return_address >= kMaxCodeAddress)
    return StepResult::kCut;
  cursor.key = return_address;
  cursor.sp = cfa;
  return StepResult::kOk;
}

}  // namespace heapprofd::x86_64
