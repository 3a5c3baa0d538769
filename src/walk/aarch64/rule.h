// aarch64: a call leaves the return address in x30, and each function saves it where it
// likes, together with the frame pointer x29 ("bp" in here) or alone.
#pragma once

#include <cstdint>

#include "walk/rule_kind.h"

namespace heapprofd::aarch64 {

// Of user space. With 52 bits, which programs must ask for, code stays below as well.
inline constexpr unsigned kAddressBits = 48;

struct Rule {
  RuleKind kind = RuleKind::kUnknown;
  int32_t cfa_offset = 0;  // bytes, multiple of 16, in [0, kMaxCfaOffset]
  // n: the caller's x29 is at CFA - 8n, just below the return address; 0: unchanged.
  uint32_t bp_slot = 0;
  // n: the return address is at CFA - 8n; 0: in x30, which is known of a frame that was
  // interrupted by a signal, and of no other.
  uint32_t return_slot = 0;

  friend bool operator==(const Rule&, const Rule&) = default;
};

inline constexpr int32_t kMaxCfaOffset = ((1 << 14) - 1) * 16;

// The frame record, which x29 points to. Where the frame ends is not known by it: right
// above at the lowest (Cursor::sp).
inline constexpr Rule kFramePointerRule{
    .kind = RuleKind::kFrameRecord, .cfa_offset = 16, .bp_slot = 2, .return_slot = 1};

// Bits: kind [0,3), cfa_offset/16 [3,17), x29 is saved [17], the place of the return
// address is counted from below [18], its place [19,26): GCC saves at the bottom of
// frames, which may be large, Clang near their top.
inline constexpr unsigned kRuleBits = 26;
inline constexpr uint32_t kMaxPlace = (1 << 7) - 1;

// How many words above its lower end, cfa_offset bytes below the CFA, a frame has the
// return address.
inline constexpr uint32_t PlaceFromBelow(Rule rule) {
  return static_cast<uint32_t>(rule.cfa_offset) / 8 - rule.return_slot;
}

inline constexpr uint32_t EncodeRule(Rule rule) {
  const bool is_from_below = rule.return_slot > kMaxPlace;
  const uint32_t place = is_from_below ? PlaceFromBelow(rule) : rule.return_slot;
  return static_cast<uint32_t>(rule.kind) |
         static_cast<uint32_t>(rule.cfa_offset / 16) << 3 |
         (rule.bp_slot != 0 ? 1u << 17 : 0) | (is_from_below ? 1u << 18 : 0) |
         place << 19;
}

inline constexpr Rule DecodeRule(uint32_t bits) {
  Rule rule{.kind = static_cast<RuleKind>(bits & 7),
            .cfa_offset = static_cast<int32_t>(bits >> 3 & 0x3fff) * 16,
            .return_slot = bits >> 19 & kMaxPlace};
  if ((bits >> 18 & 1) != 0)
    rule.return_slot = PlaceFromBelow(rule);
  if ((bits >> 17 & 1) != 0)
    rule.bp_slot = rule.return_slot + 1;
  return rule;
}

inline constexpr bool IsEncodable(Rule rule) {
  return rule.kind <= RuleKind::kStop && rule.cfa_offset % 16 == 0 &&
         rule.cfa_offset >= 0 && rule.cfa_offset <= kMaxCfaOffset &&
         (rule.bp_slot == 0 ||
          (rule.return_slot != 0 && rule.bp_slot == rule.return_slot + 1)) &&
         (rule.return_slot <= kMaxPlace ||
          (rule.return_slot <= static_cast<uint32_t>(rule.cfa_offset) / 8 &&
           PlaceFromBelow(rule) <= kMaxPlace));
}

// Where a step has read the caller's registers, in words below the caller's sp.
struct SavedPlaces {
  uint32_t bp_slot;  // 0: nowhere
  uint32_t return_slot_;
  static constexpr uint32_t kReturnSlot = 0;  // differs

  uint32_t return_slot() const { return return_slot_; }
};

// False: where the caller is depends on memory that is in none of these places.
inline constexpr bool HasSavedPlaces(Rule rule) {
  return rule.kind != RuleKind::kSignal && rule.return_slot != 0;
}

// Whether where the caller is depends on bp.
inline constexpr bool UsesBp(Rule rule) {
  return rule.kind == RuleKind::kBp || rule.kind == RuleKind::kFrameRecord;
}

inline constexpr SavedPlaces SavedPlacesOf(Rule rule) {
  return {.bp_slot = rule.bp_slot, .return_slot_ = rule.return_slot};
}

}  // namespace heapprofd::aarch64
