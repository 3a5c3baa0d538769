// The unwind rule: how to get from one frame to its caller, in 26 bits.
//
// The engine derives rules from CFI (src/unwind) and publishes them in shared memory
// (rule_table.h); the client walks its own stack by them (step.h). Freestanding: this
// folder runs inside the target.
//
// Only three registers are followed (pc, rsp, rbp): on x86-64 every CFA of compiled code
// is made from rsp or rbp at call sites. The return address is always at CFA-8.
//
// Key: the address a rule is looked up by, and what a recorded stack consists of. For a
// frame that is in a call it is the return address; for a frame that was interrupted by a
// signal it is pc+1. In both cases key-1 lies in the instruction that was executing.
#pragma once

#include <cstdint>

namespace heapprofd {

enum class RuleKind : uint8_t {
  kUnknown = 0,  // no rule: the engine must be asked
  kSp = 1,       // CFA = rsp + cfa_offset
  kBp = 2,       // CFA = rbp + cfa_offset
  kBpDeref = 3,  // CFA = *(rbp + cfa_offset): functions that realign their stack
  kEnd = 4,      // outermost frame
  kSignal = 5,  // signal trampoline: the interrupted registers are in the ucontext at rsp
  kNoCode = 6,  // the key is no address of code: the stack is cut inside of it
  kStop = 7,    // no usable unwind information: the stack is cut here
  // Not encodable.
  kUnwalkable = 8,  // needs more than these rules can say; published as kStop
};

struct Rule {
  RuleKind kind = RuleKind::kUnknown;
  int32_t cfa_offset = 0;  // bytes, multiple of 8, in [kMinCfaOffset, kMaxCfaOffset]
  // 0: rbp is unchanged; kBpSlotAtBp: the caller's rbp is where rbp points to; any other
  // n up to kMaxBpSlot: it is at CFA - 8n.
  uint32_t bp_slot = 0;

  friend bool operator==(const Rule&, const Rule&) = default;
};

inline constexpr int32_t kMaxCfaOffset = ((1 << 16) - 1) * 8;
inline constexpr int32_t kMinCfaOffset = -(1 << 16) * 8;
inline constexpr uint32_t kMaxBpSlot = (1 << 6) - 1;

// A function that realigns its stack keeps the caller's rbp at a distance from the CFA
// that differs from call to call. The number is free: in slot 1 is the return address.
inline constexpr uint32_t kBpSlotAtBp = 1;

// Bits: kind [0,3), cfa_offset/8 [3,20) two's complement, bp_slot [20,26).
inline constexpr unsigned kRuleBits = 26;

inline constexpr uint32_t EncodeRule(Rule rule) {
  const uint32_t words = static_cast<uint32_t>(rule.cfa_offset / 8) & 0x1ffff;
  return static_cast<uint32_t>(rule.kind) | words << 3 | rule.bp_slot << 20;
}

inline constexpr Rule DecodeRule(uint32_t bits) {
  const int32_t words =
      static_cast<int32_t>(bits << 12) >> 15;  // sign-extends bits 3..19
  return Rule{.kind = static_cast<RuleKind>(bits & 7),
              .cfa_offset = words * 8,
              .bp_slot = (bits >> 20) & kMaxBpSlot};
}

inline constexpr bool IsEncodable(Rule rule) {
  return rule.kind <= RuleKind::kStop && rule.cfa_offset % 8 == 0 &&
         rule.cfa_offset >= kMinCfaOffset && rule.cfa_offset <= kMaxCfaOffset &&
         rule.bp_slot <= kMaxBpSlot &&
         (rule.bp_slot != kBpSlotAtBp || rule.kind == RuleKind::kBpDeref);
}

}  // namespace heapprofd
