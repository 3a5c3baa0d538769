#include "record/dump_times.h"

#include "base/clock.h"

namespace heapprofd {

DumpTimes::DumpTimes(const DumpSchedule& schedule, uint64_t started_ns)
    : period_ns_(schedule.interval_ms * kNsPerMs),
      next_ns_(period_ns_ != 0 ? started_ns + schedule.phase_ms * kNsPerMs : UINT64_MAX) {
}

// From the schedule, not from now: dumps that take long must not make the next ones late.
// Those that were missed altogether are left out.
void DumpTimes::Advance(uint64_t now) {
  if (period_ns_ == 0)
    return;
  const uint64_t after = next_ns_ + period_ns_;
  const uint64_t missed = now > after ? (now - after) / period_ns_ : 0;
  next_ns_ = after + missed * period_ns_;
}

}  // namespace heapprofd
