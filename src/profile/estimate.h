// What one sampled allocation says about all allocations.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "profile/model.h"

namespace heapprofd {

// Probability that an allocation of `size` bytes is sampled at `interval`
// (client/sampler.h).
inline double SamplingProbability(uint64_t size, uint64_t interval) {
  if (size >= interval)
    return 1;
  return -std::expm1(-static_cast<double>(size) / static_cast<double>(interval));
}

// The sample's share in sums over all allocations: Horvitz-Thompson weights, see
// Estimate.
inline Estimate EstimateOfSample(uint64_t size, uint64_t interval) {
  const double bytes = static_cast<double>(size);
  if (size >= interval)
    return {.bytes = bytes, .count = 1};
  const double p = SamplingProbability(size, interval);
  const double relative_variance = (1 - p) / (p * p);
  return {.bytes = bytes / p,
          .count = 1 / p,
          .bytes_variance = bytes * bytes * relative_variance,
          .count_variance = relative_variance};
}

// What a file of another program tells of a callsite with the variances that samples taken
// at `interval` have, all blocks being of the mean size. `count` 0: the size is unknown,
// and as with the smallest blocks the variance is as large as it can be.
inline Estimate EstimateOfSums(double bytes, double count, uint64_t interval) {
  Estimate sums{.bytes = bytes, .count = count};
  if (interval <= 1 || bytes <= 0)
    return sums;
  const auto weight = static_cast<double>(interval);
  if (count <= 0) {
    sums.bytes_variance = bytes * weight;
    return sums;
  }
  const double size = bytes / count;
  const double odds = std::expm1(size / weight);  // p / (1 - p)
  sums.bytes_variance = bytes * size / odds;
  sums.count_variance = count / odds;
  return sums;
}

// An estimate as files hold it: rounded, not negative (nor NaN), and within int64, which
// readers keep it in. Sizes come from the profiled program.
inline int64_t RoundedFigure(double value) {
  constexpr double kMax = 9.2e18;
  return value > 0 ? std::llround(std::min(value, kMax)) : 0;
}

inline double WholeFigure(double value) {
  return static_cast<double>(RoundedFigure(value));
}

inline BoundedBytes WholeFigures(const BoundedBytes& bytes) {
  return {.bytes = WholeFigure(bytes.bytes),
          .low = WholeFigure(bytes.low),
          .high = WholeFigure(bytes.high)};
}

}  // namespace heapprofd
