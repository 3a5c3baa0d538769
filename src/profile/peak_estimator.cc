#include "profile/peak_estimator.h"

#include <algorithm>
#include <cmath>

#include "profile/estimate.h"

namespace heapprofd {
namespace {

// Whether a sample of the half `which`, or one that is certain, is among `halves`.
bool Concerns(PeakEstimator::Halves halves, size_t which) {
  return halves == 0 || (halves >> which & 1) != 0;
}

// The probability that one half has a sample at twice the interval, h, from p of both
// together: 1 - p = (1 - h)^2.
double ProbabilityOfHalf(double p) {
  return p / (1 + std::sqrt(1 - p));
}

}  // namespace

PeakEstimator::Halves PeakEstimator::Draw(uint64_t size, uint64_t interval) {
  const double p = SamplingProbability(size, interval);
  if (p >= 1)
    return 0;
  random_ = random_ * 6364136223846793005 + 1442695040888963407;  // Knuth's
  const double uniform = static_cast<double>(random_ >> 11) * 0x1p-53;
  const double half = ProbabilityOfHalf(p);
  const double only_one = half * (1 - half);
  if (uniform * p < only_one)
    return 1;
  return uniform * p < 2 * only_one ? 2 : 3;
}

void PeakEstimator::Add(uint64_t size, uint64_t interval, Halves halves, double sign) {
  const auto bytes = static_cast<double>(size);
  if (halves == 0) {
    certain_ += sign * bytes;
    return;
  }
  const double p = ProbabilityOfHalf(SamplingProbability(size, interval));
  const double weight = bytes / (2 * p);  // two halves make the whole
  for (size_t i = 0; i < halves_.size(); ++i) {
    if (!Concerns(halves, i))
      continue;
    halves_[i].bytes += sign * weight;
    halves_[i].variance += sign * weight * weight * (1 - p);
  }
}

void PeakEstimator::Hold(Half& half) const {
  half.held_certain = certain_;
  half.held_bytes = half.bytes;
  half.held_variance = half.variance;
}

PeakEstimator::Halves PeakEstimator::Allocate(uint64_t size, uint64_t interval) {
  const Halves halves = Draw(size, interval);
  if (halves == 0)
    certain_allocated_ += static_cast<double>(size);
  Return(size, interval, halves);
  return halves;
}

// The other half's maximum lasts until one of its samples is freed. What is live grows up
// to the true maximum in between, so the highest value of that time is the one to hold.
void PeakEstimator::Return(uint64_t size, uint64_t interval, Halves halves) {
  Add(size, interval, halves, 1);
  certain_peak_ = std::max(certain_peak_, certain_);
  for (size_t i = 0; i < halves_.size(); ++i) {
    Half& half = halves_[i];
    const double others = certain_ + 2 * halves_[1 - i].bytes;
    if (Concerns(halves, 1 - i) && others > half.others_most) {
      half.others_most = others;
      half.others_stand = true;
      Hold(half);
    } else if (half.others_stand && half.bytes > half.held_bytes) {
      Hold(half);
    }
  }
}

void PeakEstimator::Free(uint64_t size, uint64_t interval, Halves halves) {
  Add(size, interval, halves, -1);
  for (size_t i = 0; i < halves_.size(); ++i) {
    if (Concerns(halves, 1 - i))
      halves_[i].others_stand = false;
  }
}

Estimate PeakEstimator::Value() const {
  Estimate value;
  for (const Half& half : halves_) {
    value.bytes += half.held_certain / 2 + half.held_bytes;
    value.bytes_variance += half.held_variance;
  }
  return value;
}

}  // namespace heapprofd
