// Waiting for the engine: for space in the ring, for the last stacks to be read.
//
// An engine that moves is worth waiting for, however busy it is. One that stands still
// (it is stopped, or has no processor) costs a process one wait of kStandstillNs, not one
// per thread or call: after a wait in vain nobody waits again until the engine has moved.
#pragma once

#include <cstdint>

namespace heapprofd {

inline constexpr uint64_t kStandstillNs = 1'000'000'000;

// The engine has not moved since somebody waited for it in vain.
bool StandsEngineStill();

// CLOCK_MONOTONIC; under a seccomp filter a measure of time that needs no system call.
uint64_t EngineWaitClockNs();

// One wait, as a loop: while (!there && wait.MayGoOn()) nap.
class EngineWait {
 public:
  // `limit_ns`: waits no longer even if the engine moves; 0: no limit. `waited_ns`: what
  // the same call of the program has waited already.
  explicit EngineWait(uint64_t limit_ns, uint64_t waited_ns = 0)
      : limit_ns_(limit_ns), waited_before_ns_(waited_ns) {}

  // False: it is in vain, for this thread and all others.
  bool MayGoOn();

  // With what was waited before; as of the last MayGoOn.
  uint64_t waited_ns() const { return waited_before_ns_ + (now_ns_ - started_ns_); }

  // After MayGoOn: when it may say no, if nothing moves until then.
  uint64_t rest_ns() const;

 private:
  uint64_t limit_ns_;
  uint64_t waited_before_ns_;
  uint64_t started_ns_ = 0;  // 0: has not waited yet
  uint64_t now_ns_ = 0;
  uint64_t moved_ns_ = 0;
  uint64_t heartbeat_ = 0;
  uint64_t read_position_ = 0;
};

}  // namespace heapprofd
