// How much was live at most, without the bias of a maximum: the highest of many noisy
// sums is one whose noise was high. Each sample belongs to one of two halves, or to both,
// so that each half is a recording of its own at twice the interval, independent of the
// other. One half tells when the maximum was, the other one how much was live then; the
// estimate is the mean of both ways. docs/design/peak.md has the reasons and figures.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "profile/model.h"

namespace heapprofd {

class PeakEstimator {
 public:
  // Which halves a sample belongs to, a bit each. None: its allocation was certain to be
  // recorded, it is known to both.
  using Halves = uint8_t;

  explicit PeakEstimator(uint64_t seed) : random_(seed) {}

  // A sample begins to be live. `size` and `interval`: as in EstimateOfSample.
  Halves Allocate(uint64_t size, uint64_t interval);

  // It is live no longer, or again after all.
  void Free(uint64_t size, uint64_t interval, Halves halves);
  void Return(uint64_t size, uint64_t interval, Halves halves);

  // Bytes and their variance; counts are 0.
  Estimate Value() const;

  // Of the allocations that were certain to be recorded: no estimates.
  double certain_live() const { return std::max(0.0, certain_); }  // sums are rounded

  double certain_peak() const { return certain_peak_; }

  double certain_allocated() const { return certain_allocated_; }

 private:
  struct Half {
    double bytes = 0;  // this half's part of what is live now
    double variance = 0;
    double others_most = 0;    // the highest total that the other half ever told
    bool others_stand = true;  // and tells now
    double held_certain = 0;   // live when the other half's total was highest
    double held_bytes = 0;     // this half's part of it
    double held_variance = 0;
  };

  Halves Draw(uint64_t size, uint64_t interval);
  // `sign`: 1 or -1. What is certain belongs to `halves` 0.
  void Add(uint64_t size, uint64_t interval, Halves halves, double sign);
  void Hold(Half& half) const;

  std::array<Half, 2> halves_;
  double certain_ = 0;
  double certain_peak_ = 0;
  double certain_allocated_ = 0;
  uint64_t random_;
};

}  // namespace heapprofd
