// Converts the client's time stamp counter readings to CLOCK_MONOTONIC.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"
#include "rt/machine.h"

namespace heapprofd {

class TscClock {
 public:
  TscClock() : first_(Read()) {}

  // Takes a further pair of readings; call it now and then.
  void Update() {
    last_ = Read();
    if (last_.tsc - first_.tsc > kMinTicks)
      ns_per_tick_ = static_cast<double>(last_.ns - first_.ns) /
                     static_cast<double>(last_.tsc - first_.tsc);
  }

  // Never before the first reading, nor later than now: a reading from the target may be
  // anything.
  uint64_t ToNs(uint64_t tsc) const {
    if (ns_per_tick_ == 0)
      return last_.ns;
    if (tsc > last_.tsc) {
      const uint64_t now = std::max<uint64_t>(rt::ReadTsc(), last_.tsc);
      return last_.ns + NsOf(std::min(tsc, now) - last_.tsc);
    }
    const uint64_t back = NsOf(last_.tsc - tsc);
    return back < last_.ns - first_.ns ? last_.ns - back : first_.ns;
  }

  uint64_t last_ns() const { return last_.ns; }

 private:
  struct Pair {
    uint64_t tsc = 0;
    uint64_t ns = 0;
  };

  static constexpr uint64_t kMinTicks = 1'000'000;

  // Both at one moment, as far as we get the processor for it: of some attempts the one
  // that was interrupted least.
  static Pair Read() {
    constexpr int kAttempts = 5;
    const uint64_t short_ticks = rt::TicksOf(5'000);
    Pair best;
    uint64_t shortest = UINT64_MAX;
    for (int i = 0; i < kAttempts && shortest > short_ticks; ++i) {
      const uint64_t before = rt::ReadTsc();
      const uint64_t ns = MonotonicNs();
      const uint64_t ticks = rt::ReadTsc() - before;
      if (ticks < shortest) {
        shortest = ticks;
        best = {.tsc = before + ticks / 2, .ns = ns};
      }
    }
    return best;
  }

  uint64_t NsOf(uint64_t ticks) const {
    constexpr double kMost = 9e18;
    return static_cast<uint64_t>(
        std::min(static_cast<double>(ticks) * ns_per_tick_, kMost));
  }

  Pair first_;
  Pair last_;
  double ns_per_tick_ = 0;
};

}  // namespace heapprofd
