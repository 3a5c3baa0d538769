// Rules for tests of whatever walks, the same on every architecture.
#pragma once

#include <cstdint>

#include "walk/rule.h"

namespace heapprofd {

// Sizes of frames are multiples of it, in bytes.
#if defined(__x86_64__)
inline constexpr int32_t kFrameUnit = 8;
#else
inline constexpr int32_t kFrameUnit = 16;
#endif

// For a function that has the return address right below the CFA, and below that, if it
// saves it, bp.
inline Rule TestRule(RuleKind kind, int32_t cfa_offset, bool saves_bp = false) {
  Rule rule{.kind = kind, .cfa_offset = cfa_offset, .bp_slot = saves_bp ? 2u : 0u};
#if !defined(__x86_64__)
  rule.return_slot = 1;
#endif
  return rule;
}

}  // namespace heapprofd
