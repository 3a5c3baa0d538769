// When the dumps of a session are due that its schedule asks for.
#pragma once

#include <cstdint>

#include "engine/session_config.h"

namespace heapprofd {

class DumpTimes {
 public:
  // Times are those of MonotonicNs.
  DumpTimes(const DumpSchedule& schedule, uint64_t started_ns);

  // UINT64_MAX: never.
  uint64_t next_ns() const { return next_ns_; }

  // The one that was due has been taken; it is `now`.
  void Advance(uint64_t now);

 private:
  uint64_t period_ns_;  // 0: there are none
  uint64_t next_ns_;
};

}  // namespace heapprofd
