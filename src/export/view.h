// The views of a heap profile, in the order in which all exports list them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "profile/estimate.h"
#include "profile/model.h"

namespace heapprofd {

enum class View : uint8_t { kAllocObjects, kAllocSpace, kObjects, kSpace };

// Rounded as in traces: what was allocated and what was freed, and live is the
// difference.
inline int64_t ValueOf(const CallsiteTotals& totals, View view) {
  const bool is_space = view == View::kAllocSpace || view == View::kSpace;
  const auto rounded = [is_space](const Estimate& estimate) {
    return RoundedFigure(is_space ? estimate.bytes : estimate.count);
  };
  const int64_t allocated = rounded(totals.allocated);
  if (view == View::kAllocObjects || view == View::kAllocSpace)
    return allocated;
  return allocated - std::min(allocated, rounded(totals.freed));
}

}  // namespace heapprofd
