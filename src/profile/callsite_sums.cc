#include "profile/callsite_sums.h"

#include <algorithm>
#include <numeric>

namespace heapprofd {

Estimate CallsiteSums::Certain::ScaleRest(const Estimate& sum, double scale) const {
  return {.bytes = bytes + (sum.bytes - bytes) * scale,
          .count = count + (sum.count - count) * scale,
          .bytes_variance = sum.bytes_variance * scale * scale,
          .count_variance = sum.count_variance * scale * scale};
}

std::vector<uint32_t> CallsiteSums::OrderedRows() const {
  std::vector<uint32_t> rows(callsites_.size());
  std::iota(rows.begin(), rows.end(), 0u);
  std::ranges::sort(rows, {}, [this](uint32_t row) { return callsites_[row].callsite; });
  return rows;
}

void CallsiteSums::Snapshot(double peak_scale, HeapDump* dump) const {
  dump->callsites.clear();
  dump->peak.clear();
  dump->callsites.reserve(callsites_.size());
  dump->peak.reserve(callsites_.size());
  for (const uint32_t row : OrderedRows()) {
    const State& state = callsites_[row];
    dump->callsites.emplace(state.callsite, state.totals);
    const bool has_changed = state.peak_generation == peak_generation_;
    const Estimate at_peak = has_changed ? state.peak : state.totals.live();
    const Certain& certain = has_changed ? state.peak_certain : state.live_certain;
    if (at_peak.bytes > 0)
      dump->peak.emplace(state.callsite, certain.ScaleRest(at_peak, peak_scale));
  }
}

}  // namespace heapprofd
