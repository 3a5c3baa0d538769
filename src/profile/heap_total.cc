#include "profile/heap_total.h"

#include <algorithm>
#include <limits>

#include "profile/limits.h"

namespace heapprofd {

double HeapTotal::PossibleRest(const HeapDump& dump) const {
  const auto counted = static_cast<double>(dump.exact_alloc_bytes);
  const double rest = counted - peak_estimator_.certain_allocated();
  // Without samples either, no call is no call. With some, they were not counted.
  const bool is_counted = dump.exact_alloc_calls > 0 || allocated_.count == 0;
  return is_counted && rest >= 0 ? rest : std::numeric_limits<double>::infinity();
}

double HeapTotal::LiveBytes(const HeapDump& counted) const {
  return std::clamp(live_.bytes, 0.0,
                    peak_estimator_.certain_live() + PossibleRest(counted));
}

// The two halves may tell different moments: then the maximum could be at either, and the
// distance to the highest sum shows how much that matters. That sum, which is biased
// upwards, is at least the one at the true maximum, and whatever the variance was there,
// it was not above the widest: so this upper limit is safe.
BoundedBytes HeapTotal::PeakTotal(const HeapDump& dump) const {
  const uint64_t interval = dump.sampling_interval;
  Estimate value = peak_estimator_.Value();
  if (value.bytes < live_.bytes)
    value = live_;
  value.bytes = std::clamp(value.bytes, peak_estimator_.certain_peak(),
                           std::max(peak_.bytes, peak_estimator_.certain_peak()));
  const double distance = peak_.bytes - value.bytes;
  value.bytes_variance += std::min(value.bytes_variance, distance * distance);
  const double possible = peak_estimator_.certain_peak() + PossibleRest(dump);
  BoundedBytes total;
  total.bytes = std::min(value.bytes, possible);
  total.low =
      std::clamp(LowerLimit(value, interval),
                 std::min(peak_estimator_.certain_peak(), total.bytes), total.bytes);
  Estimate highest = peak_;
  highest.bytes_variance = widest_;
  total.high =
      std::max(total.bytes,
               std::min(UpperLimit(highest, interval) + dump.unsampled_bytes, possible));
  return total;
}

void HeapTotal::Snapshot(HeapDump* dump) const {
  dump->peak_ns = peak_ns_;
  dump->peak_total = PeakTotal(*dump);
  dump->certain_live = peak_estimator_.certain_live();
  dump->possible_live = dump->certain_live + PossibleRest(*dump);
}

double HeapTotal::PeakScale(const BoundedBytes& peak_total) const {
  const double sampled = peak_.bytes - peak_certain_;
  return sampled > 0 ? std::max(0.0, peak_total.bytes - peak_certain_) / sampled : 1;
}

}  // namespace heapprofd
