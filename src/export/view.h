// The views of a heap profile, in the order in which all exports list them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "profile/estimate.h"
#include "profile/model.h"

namespace heapprofd {

enum class View : uint8_t { kAllocObjects, kAllocSpace, kObjects, kSpace };

// False: the file does not give it, and its values mean nothing.
inline bool IsTold(const ToldFigures& told, View view) {
  switch (view) {
    case View::kAllocObjects:
      return told.alloc_count;
    case View::kAllocSpace:
      return told.alloc_size;
    case View::kObjects:
      return told.live_count;
    case View::kSpace:
      break;
  }
  return told.live_size;
}

// Rounded as in traces: what was allocated and what was freed, and live is the
// difference. Estimates do not free more than was allocated; live memory of other tools'
// files may be more than was allocated, or negative where nothing is said of that.
inline int64_t ValueOf(const CallsiteTotals& totals, View view) {
  const bool is_space = view == View::kAllocSpace || view == View::kSpace;
  const auto rounded = [is_space](const Estimate& estimate) {
    const double value = is_space ? estimate.bytes : estimate.count;
    return value < 0 ? -RoundedFigure(-value) : RoundedFigure(value);
  };
  const int64_t allocated = rounded(totals.allocated);
  if (view == View::kAllocObjects || view == View::kAllocSpace)
    return allocated;
  const int64_t live = allocated - rounded(totals.freed);
  return allocated > 0 ? std::max<int64_t>(live, 0) : live;
}

}  // namespace heapprofd
