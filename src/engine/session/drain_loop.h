// In which order the rings of a session are read, how much of each, and when it
// is time to look again.
//
// One thread: the session's.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/fair_turn.h"
#include "engine/session/live_target.h"
#include "engine/tsc_clock.h"

namespace heapprofd {

class DrainLoop {
 public:
  // `clock` outlives it; it is brought up to date by each turn.
  explicit DrainLoop(TscClock* clock) : clock_(clock) {}

  // Reads all rings until `turn_end_ns` (CLOCK_MONOTONIC), beginning where the
  // turn before had to leave off. How long to wait until the next time, in
  // milliseconds: 0 when there is more, INT_MAX when all is quiet.
  int Turn(std::vector<LiveTarget>& targets, uint64_t turn_end_ns);

  // Somebody has come: it is looked at often for a while.
  void NoteNews() { busy_until_ns_ = clock_->last_ns() + kBusyNs; }

  // It is no target any more.
  void Forget(const Target* target) {
    looking_ = looking_ == target ? nullptr : looking_;
  }

 private:
  // After activity the rings are looked at more often for so long.
  static constexpr uint64_t kBusyNs = 300'000'000;

  // What a turn has seen.
  struct Seen {
    double fill = 0;           // the fullest ring
    bool is_learning = false;  // rules of new code
    bool is_pending = false;   // there is more
    bool did_read = false;
  };

  bool DrainOne(LiveTarget& live);
  int WaitAfter(const Seen& seen);

  TscClock* clock_;
  FairTurn turn_;
  size_t first_ = 0;                 // of the targets, in the next turn
  const Target* looking_ = nullptr;  // for ended owners of its fork slots: one at a time
  uint64_t busy_until_ns_ = 0;       // short waits until then
  int wait_ms_ = 1;                  // the short wait
};

}  // namespace heapprofd
