#include "profile/limits.h"

#include <algorithm>
#include <cmath>

namespace heapprofd {
namespace {

constexpr double kNormal = 1.96;      // 97.5 % of a normal distribution
constexpr double kManySamples = 1e6;  // whose distribution is normal

// Quantile of a gamma distribution with this shape, by Wilson and Hilferty.
double GammaQuantile(double shape, double normal) {
  const double root = 1 - 1 / (9 * shape) + normal / (3 * std::sqrt(shape));
  return root > 0 ? shape * root * root * root : 0;
}

// How many samples with the weight `interval` vary as much as the sum does.
double EffectiveSamples(const Estimate& sum, uint64_t interval) {
  const auto weight = static_cast<double>(interval);
  return std::max(0.0, sum.bytes_variance) / weight / weight;
}

}  // namespace

double LowerLimit(const Estimate& sum, uint64_t interval) {
  if (interval <= 1 || sum.bytes_variance <= 0)
    return sum.bytes;
  const double n = EffectiveSamples(sum, interval);
  if (n >= kManySamples)
    return sum.bytes - kNormal * std::sqrt(sum.bytes_variance);
  return sum.bytes - static_cast<double>(interval) * (n - GammaQuantile(n, -kNormal));
}

double UpperLimit(const Estimate& sum, uint64_t interval) {
  if (interval <= 1)
    return sum.bytes;
  const double n = EffectiveSamples(sum, interval);
  if (n >= kManySamples)
    return sum.bytes + kNormal * std::sqrt(sum.bytes_variance);
  return sum.bytes + static_cast<double>(interval) * (GammaQuantile(n + 1, kNormal) - n);
}

BoundedBytes LiveTotal(const HeapDump& dump) {
  Estimate live;
  for (const auto& [callsite, totals] : dump.callsites)
    live += totals.live();
  BoundedBytes total;
  total.bytes = std::clamp(live.bytes, 0.0, dump.possible_live);
  total.low = std::clamp(LowerLimit(live, dump.sampling_interval),
                         std::min(dump.certain_live, total.bytes), total.bytes);
  total.high = std::max(total.bytes, std::min(UpperLimit(live, dump.sampling_interval),
                                              dump.possible_live));
  return total;
}

BoundedBytes SumOf(const BoundedBytes& a, const BoundedBytes& b) {
  const double bytes = a.bytes + b.bytes;
  return {.bytes = bytes,
          .low = bytes - std::hypot(a.bytes - a.low, b.bytes - b.low),
          .high = bytes + std::hypot(a.high - a.bytes, b.high - b.bytes)};
}

}  // namespace heapprofd
