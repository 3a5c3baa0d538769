// The views of a heap profile, in the order in which all exports list them.
#pragma once

#include <cstdint>

#include "profile/estimate.h"
#include "profile/model.h"

namespace heapprofd {

enum class View : uint8_t { kAllocObjects, kAllocSpace, kObjects, kSpace };

inline int64_t ValueOf(const CallsiteTotals& totals, View view) {
  const Estimate estimate = view == View::kAllocObjects || view == View::kAllocSpace
                                ? totals.allocated
                                : totals.live();
  const double value =
      view == View::kAllocSpace || view == View::kSpace ? estimate.bytes : estimate.count;
  return RoundedFigure(value);
}

}  // namespace heapprofd
