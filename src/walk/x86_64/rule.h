// x86-64: the return address is always at CFA-8, and rbp anywhere.
#pragma once

#include <cstdint>

#include "walk/rule_kind.h"

namespace heapprofd::x86_64 {

inline constexpr unsigned kAddressBits = 47;  // of user space

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

// What compilers do with -fno-omit-frame-pointer, and JIT compilers by default.
inline constexpr Rule kFramePointerRule{
    .kind = RuleKind::kBp, .cfa_offset = 16, .bp_slot = 2};

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

// Where a step has read the caller's registers, in words below the caller's sp.
struct SavedPlaces {
  uint32_t bp_slot;  // 0: nowhere
  static constexpr uint32_t kReturnSlot = 1;

  uint32_t return_slot() const { return kReturnSlot; }
};

// False: where the caller is depends on memory that is in none of these places.
inline constexpr bool HasSavedPlaces(Rule rule) {
  return rule.kind != RuleKind::kSignal && rule.kind != RuleKind::kBpDeref;
}

// Whether where the caller is depends on bp, of rules with saved places.
inline constexpr bool UsesBp(Rule rule) {
  return rule.kind == RuleKind::kBp;
}

inline constexpr SavedPlaces SavedPlacesOf(Rule rule) {
  return {.bp_slot = rule.bp_slot};
}

}  // namespace heapprofd::x86_64
