// Makes a target sample less when its records come faster than they are read: the
// interval doubles until they fit.
//
// One thread: the session's; the client reads the interval at its next sample.
#pragma once

#include <cstdint>

#include "engine/session_config.h"
#include "engine/target/published_config.h"
#include "engine/tsc_clock.h"
#include "wire/memory_files.h"

namespace heapprofd {

class IntervalGovernor {
 public:
  // All but `config` outlive it.
  IntervalGovernor(const SessionConfig& config,
                   PublishedConfig* published,
                   SharedMemory* memory,
                   const TscClock* clock)
      : drops_(config.when_full == WhenFull::kDrop),
        threshold_bytes_(config.adaptive_threshold_bytes),
        published_(published),
        memory_(memory),
        clock_(clock) {}

  // A look at what is lost and how much waits in the ring, each turn.
  void Look(uint64_t pending_bytes);

 private:
  static constexpr uint64_t kPauseNs = 100'000'000;  // for the last change to take effect

  bool IsPressed(uint64_t pending_bytes);

  bool drops_;                // records that do not fit
  uint64_t threshold_bytes_;  // of the ring, that are to be free
  PublishedConfig* published_;
  SharedMemory* memory_;
  const TscClock* clock_;
  uint64_t lost_seen_ = 0;
  uint64_t changed_ns_ = 0;
};

}  // namespace heapprofd
