// How much of a heap is live, was ever allocated, and was live at most: estimates of its
// samples, and what its exact totals allow of them. Of the peak there is the highest sum,
// which is biased upwards and whose moment is known, and an estimate without that bias
// (profile/peak_estimator.h).
#pragma once

#include <algorithm>
#include <cstdint>

#include "profile/live_sample.h"
#include "profile/model.h"
#include "profile/peak_estimator.h"

namespace heapprofd {

class HeapTotal {
 public:
  // `seed`: of what the estimate of the peak draws.
  explicit HeapTotal(uint64_t seed) : peak_estimator_(seed) {}

  // A sample begins to be live. `estimate`: EstimateOfSample.
  PeakEstimator::Halves Allocate(const SampledAllocation& allocation,
                                 const Estimate& estimate) {
    live_ += estimate;
    allocated_ += estimate;
    return peak_estimator_.Allocate(allocation.size, allocation.interval);
  }

  // It is live no longer, or again after all.
  void Free(const LiveSample& sample, const Estimate& estimate) {
    live_ -= estimate;
    peak_estimator_.Free(sample.size(), sample.interval(), sample.halves());
  }

  void Return(const LiveSample& sample, const Estimate& estimate) {
    live_ += estimate;
    peak_estimator_.Return(sample.size(), sample.interval(), sample.halves());
  }

  // To be asked whenever more is live: whether it was never as much before.
  bool NotePeak(uint64_t now_ns) {
    widest_ = std::max(widest_, live_.bytes_variance);
    if (live_.bytes > peak_.bytes) {
      peak_ = live_;
      peak_certain_ = peak_estimator_.certain_live();
      peak_ns_ = now_ns;
      return true;
    }
    return false;
  }

  const Estimate& live() const { return live_; }

  // Bytes; no more than the exact totals of `counted` allow.
  double LiveBytes(const HeapDump& counted) const;

  const Estimate& allocated() const { return allocated_; }

  // Fills when and how much the peak was, and what can be live. `dump` has its sampling
  // interval and its exact totals already.
  void Snapshot(HeapDump* dump) const;

  // What makes the sampled part of the highest sum that of this peak, which Snapshot has
  // filled.
  double PeakScale(const BoundedBytes& peak_total) const;

 private:
  // Bytes of live allocations that are not certain_live(): more cannot be, by the exact
  // totals; infinite when these are not known.
  double PossibleRest(const HeapDump& dump) const;
  BoundedBytes PeakTotal(const HeapDump& dump) const;

  Estimate live_;
  Estimate allocated_;
  PeakEstimator peak_estimator_;
  Estimate peak_;            // the highest of live_
  double widest_ = 0;        // the highest variance of live_
  double peak_certain_ = 0;  // bytes of peak_
  uint64_t peak_ns_ = 0;
};

}  // namespace heapprofd
