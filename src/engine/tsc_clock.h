// Converts the client's time stamp counter readings to CLOCK_MONOTONIC.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace heapprofd {

class TscClock {
 public:
  TscClock() : first_tsc_(__builtin_ia32_rdtsc()), first_ns_(MonotonicNs()) {}

  // Takes a further pair of readings; call it now and then.
  void Update() {
    last_tsc_ = __builtin_ia32_rdtsc();
    last_ns_ = MonotonicNs();
    if (last_tsc_ - first_tsc_ > kMinTicks)
      ns_per_tick_ = static_cast<double>(last_ns_ - first_ns_) /
                     static_cast<double>(last_tsc_ - first_tsc_);
  }

  // Never later than the last Update: a reading from the target may be anything.
  uint64_t ToNs(uint64_t tsc) const {
    if (tsc >= last_tsc_ || ns_per_tick_ == 0)
      return last_ns_;
    const double back = static_cast<double>(last_tsc_ - tsc) * ns_per_tick_;
    return back < static_cast<double>(last_ns_ - first_ns_)
               ? last_ns_ - static_cast<uint64_t>(back)
               : first_ns_;
  }

  uint64_t last_ns() const { return last_ns_; }

 private:
  static constexpr uint64_t kMinTicks = 1'000'000;

  uint64_t first_tsc_;
  uint64_t first_ns_;
  uint64_t last_tsc_ = 0;
  uint64_t last_ns_ = 0;
  double ns_per_tick_ = 0;
};

}  // namespace heapprofd
