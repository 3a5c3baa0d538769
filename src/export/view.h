// The views of a heap profile, in the order in which all exports list them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "profile/model.h"

namespace heapprofd {

enum class View : uint8_t { kAllocObjects, kAllocSpace, kObjects, kSpace };

// Rounded, never negative, and representable: sizes come from the profiled program.
inline int64_t RoundedValue(double value) {
  constexpr double kMax = 9.2e18;
  return value > 0 ? std::llround(std::min(value, kMax)) : 0;
}

inline int64_t ValueOf(const CallsiteTotals& totals, View view) {
  const Estimate estimate = view == View::kAllocObjects || view == View::kAllocSpace
                                ? totals.allocated
                                : totals.live();
  return RoundedValue(view == View::kAllocSpace || view == View::kSpace ? estimate.bytes
                                                                        : estimate.count);
}

}  // namespace heapprofd
