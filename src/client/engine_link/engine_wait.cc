#include "client/engine_link/engine_wait.h"

#include <time.h>

#include <algorithm>

#include "client/confinement.h"
#include "client/session.h"
#include "rt/syscall.h"

namespace heapprofd {
namespace {

// The engine's heartbeat when a wait was last in vain. Beats are times: no other session
// has the same.
constinit std::atomic<uint64_t> g_still_at{UINT64_MAX};

uint64_t Heartbeat() {
  return g_session.engine()->control.heartbeat.load(std::memory_order_relaxed);
}

}  // namespace

bool StandsEngineStill() {
  return g_session.memory.load(std::memory_order_acquire) != nullptr &&
         g_still_at.load(std::memory_order_relaxed) == Heartbeat();
}

uint64_t EngineWaitClockNs() {
  if (IsConfined())
    return rt::NanosecondsOf(rt::ReadTsc());
  timespec now{};
  rt::Syscall(SYS_clock_gettime, CLOCK_MONOTONIC, rt::ToArg(&now));
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<uint64_t>(now.tv_nsec);
}

uint64_t EngineWait::rest_ns() const {
  const uint64_t rest_ns = kStandstillNs - (now_ns_ - moved_ns_);
  return limit_ns_ == 0 ? rest_ns : std::min(rest_ns, limit_ns_ - waited_ns());
}

bool EngineWait::MayGoOn() {
  const uint64_t beat = Heartbeat();
  if (beat == g_still_at.load(std::memory_order_relaxed))
    return false;
  const uint64_t read =
      g_session.client()->ring.consumed_position.load(std::memory_order_relaxed);
  now_ns_ = EngineWaitClockNs();
  if (started_ns_ == 0)
    started_ns_ = now_ns_;
  if (beat != heartbeat_ || read != read_position_) {
    heartbeat_ = beat;
    read_position_ = read;
    moved_ns_ = now_ns_;
  }
  if (now_ns_ - moved_ns_ < kStandstillNs && (limit_ns_ == 0 || waited_ns() < limit_ns_))
    return true;
  g_still_at.store(beat, std::memory_order_relaxed);
  return false;
}

}  // namespace heapprofd
