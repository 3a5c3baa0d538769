// aarch64: one step from a frame to its caller (walk/step.h).
#pragma once

#include <cstdint>

#include "walk/aarch64/rule.h"
#include "walk/step_result.h"

namespace heapprofd::aarch64 {

// sp itself is a multiple of 16.
inline constexpr uint64_t kSpIsBound = 1;

// Registers of the frame being left. `key` is the frame's own key (rule.h).
struct Cursor {
  uint64_t key = 0;
  // With kSpIsBound: the frame begins there or further up, which is all that is known of a
  // frame whose callee was left by its frame record.
  uint64_t sp = 0;
  uint64_t bp = 0;    // x29
  uint64_t link = 0;  // x30 of a frame that a signal has interrupted; 0: not known

  friend bool operator==(const Cursor&, const Cursor&) = default;
};

// What records carry of a Cursor beside key, sp and bp.
inline constexpr uint64_t LinkOf(const Cursor& cursor) {
  return cursor.link;
}

inline constexpr Cursor WithLink(Cursor cursor, uint64_t link) {
  cursor.link = link;
  return cursor;
}

// What SavedPlaces count from.
inline constexpr uint64_t SavedBase(const Cursor& caller) {
  return caller.sp & ~kSpIsBound;
}

// A return address as the function has saved it may be signed (PAC): the signature is in
// the bits that no address of user space has. Taken off without a look at whether
// there is one, which the unwind information says only to those who follow it.
inline constexpr uint64_t WithoutSignature(uint64_t return_address) {
  return return_address & ((uint64_t{1} << kAddressBits) - 1);
}

// Offsets of the interrupted registers from sp at the return of a signal handler (Linux:
// struct rt_sigframe, i.e. siginfo_t and ucontext_t: 176 bytes of header, then
// sigcontext: the fault's address, x0 to x30, sp, pc).
inline constexpr uint64_t kUcontextBp = 128 + 176 + 8 + 8 * 29;
inline constexpr uint64_t kUcontextLink = kUcontextBp + 8;
inline constexpr uint64_t kUcontextSp = kUcontextLink + 8;
inline constexpr uint64_t kUcontextPc = kUcontextSp + 8;

template <typename Memory>
StepResult StepSignal(Cursor& cursor, const Memory& memory) {
  Cursor interrupted;
  uint64_t pc = 0;
  if (!memory.Read(cursor.sp + kUcontextPc, &pc) ||
      !memory.Read(cursor.sp + kUcontextSp, &interrupted.sp) ||
      !memory.Read(cursor.sp + kUcontextBp, &interrupted.bp) ||
      !memory.Read(cursor.sp + kUcontextLink, &interrupted.link))
    return StepResult::kBadMemory;
  if (pc < kMinCodeAddress)
    return StepResult::kEnd;
  interrupted.key = pc + 1;
  cursor = interrupted;
  return StepResult::kOk;
}

// By a rule of kind kSp, kBp or kFrameRecord.
template <typename Memory>
StepResult StepToCfa(Rule rule, Cursor& cursor, const Memory& memory) {
  if (rule.kind == RuleKind::kSp && (cursor.sp & kSpIsBound) != 0)
    return StepResult::kCut;
  const uint64_t base = rule.kind == RuleKind::kSp ? cursor.sp : cursor.bp;
  const uint64_t cfa = base + static_cast<uint64_t>(int64_t{rule.cfa_offset});
  // A caller's frame lies above its callee's, which has room for what it saves.
  const bool is_leaf = rule.return_slot == 0;
  if (cfa < cursor.sp || (cfa == cursor.sp && !is_leaf) || cfa % 8 != 0)
    return StepResult::kBadMemory;
  Cursor caller{.sp = rule.kind == RuleKind::kFrameRecord ? cfa | kSpIsBound : cfa,
                .bp = cursor.bp};
  uint64_t saved = cursor.link;
  if (is_leaf ? saved == 0 : !memory.Read(cfa - 8 * uint64_t{rule.return_slot}, &saved))
    return StepResult::kBadMemory;
  if (rule.bp_slot != 0 && !memory.Read(cfa - 8 * uint64_t{rule.bp_slot}, &caller.bp))
    return StepResult::kBadMemory;
  caller.key = WithoutSignature(saved);
  if (caller.key < kMinCodeAddress)
    return StepResult::kEnd;
  cursor = caller;
  return StepResult::kOk;
}

template <typename Memory>
StepResult Step(Rule rule, Cursor& cursor, const Memory& memory) {
  switch (rule.kind) {
    case RuleKind::kSp:
    case RuleKind::kBp:
    case RuleKind::kFrameRecord:
      return StepToCfa(rule, cursor, memory);
    case RuleKind::kSignal:
      return (cursor.sp & kSpIsBound) != 0 ? StepResult::kCut
                                           : StepSignal(cursor, memory);
    case RuleKind::kUnknown:
    case RuleKind::kEnd:
    case RuleKind::kNoCode:
    case RuleKind::kStop:
    case RuleKind::kUnwalkable:
      break;
  }
  return ResultWithoutCaller(rule.kind);
}

}  // namespace heapprofd::aarch64
