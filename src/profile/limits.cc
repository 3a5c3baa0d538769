#include "profile/limits.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "profile/estimate.h"

namespace heapprofd {
namespace {

constexpr double kManySamples = 1e6;  // whose distribution is normal

// Quantile of a gamma distribution with this shape, by Wilson and Hilferty.
double GammaQuantile(double shape, double normal) {
  const double root = 1 - 1 / (9 * shape) + normal / (3 * std::sqrt(shape));
  return root > 0 ? shape * root * root * root : 0;
}

// How many samples of this weight vary as much as the sum does.
double EffectiveSamples(const Estimate& sum, double weight) {
  return std::max(0.0, sum.bytes_variance) / weight / weight;
}

}  // namespace

double LowerLimit(const Estimate& sum, uint64_t interval) {
  if (interval <= 1 || sum.bytes_variance <= 0)
    return sum.bytes;
  // Those that were taken, which may have weighed less: at a smaller interval.
  const double weight = std::min(static_cast<double>(interval),
                                 sum.bytes_variance / std::max(1.0, sum.bytes));
  const double n = EffectiveSamples(sum, weight);
  if (n >= kManySamples)
    return sum.bytes - kNormalQuantile * std::sqrt(sum.bytes_variance);
  return sum.bytes - weight * (n - GammaQuantile(n, -kNormalQuantile));
}

double UpperLimit(const Estimate& sum, uint64_t interval) {
  if (interval <= 1)
    return sum.bytes;
  const auto weight = static_cast<double>(interval);  // of what was missed
  const double n = EffectiveSamples(sum, weight);
  if (n >= kManySamples)
    return sum.bytes + kNormalQuantile * std::sqrt(sum.bytes_variance);
  return sum.bytes + weight * (GammaQuantile(n + 1, kNormalQuantile) - n);
}

void LiveSum::Add(const HeapDump& dump) {
  for (const auto& [callsite, totals] : dump.callsites)
    live_ += totals.live();
  certain_ += dump.certain_live;
  possible_ += dump.possible_live;
  unsampled_ += dump.unsampled_bytes;
  interval_ = std::max(interval_, dump.sampling_interval);
}

void LiveSum::AddUnsampled(const ForkedChildren& children) {
  possible_ += children.uncounted > 0 ? std::numeric_limits<double>::infinity()
                                      : static_cast<double>(children.alloc_bytes);
}

BoundedBytes LiveSum::Total() const {
  if (live_.bytes <= -1)  // of a file that is a difference of two profiles
    return {.bytes = live_.bytes, .low = live_.bytes, .high = live_.bytes};
  BoundedBytes total;
  total.bytes = std::clamp(live_.bytes, 0.0, possible_);
  total.low = std::clamp(LowerLimit(live_, interval_), std::min(certain_, total.bytes),
                         total.bytes);
  total.high = std::max(total.bytes,
                        std::min(UpperLimit(live_, interval_) + unsampled_, possible_));
  return WholeFigures(total);
}

double LiveSum::standard_error() const {
  return std::sqrt(std::max(0.0, live_.bytes_variance));
}

BoundedBytes LiveTotal(const HeapDump& dump) {
  LiveSum sum;
  sum.Add(dump);
  return sum.Total();
}

double IdleSum(const HeapDump& dump) {
  double bytes = 0;
  for (const auto& [callsite, idle] : dump.idle.callsites)
    bytes += idle.bytes;
  return bytes;
}

double IdleTotal(const HeapDump& dump) {
  return std::min(IdleSum(dump), LiveTotal(dump).bytes);
}

bool LacksPeak(const HeapDump& dump) {
  return dump.peak_ns == 0 && dump.peak_total.bytes <= 0 && LiveTotal(dump).bytes > 0;
}

Estimate AllocatedTotal(const HeapDump& dump) {
  if (dump.exact_alloc_calls > 0)
    return {.bytes = static_cast<double>(dump.exact_alloc_bytes),
            .count = static_cast<double>(dump.exact_alloc_calls)};
  Estimate allocated;
  for (const auto& [callsite, totals] : dump.callsites)
    allocated += totals.allocated;
  return allocated;
}

BoundedBytes SumOf(const BoundedBytes& a, const BoundedBytes& b) {
  return {.bytes = a.bytes + b.bytes, .low = a.low + b.low, .high = a.high + b.high};
}

}  // namespace heapprofd
