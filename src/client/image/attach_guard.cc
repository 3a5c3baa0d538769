#include "client/image/attach_guard.h"

#include <atomic>

#include "client/forked_child.h"
#include "client/sampler.h"
#include "rt/syscall.h"

namespace heapprofd {
namespace {

std::atomic<uint64_t> g_seen_heartbeat;
std::atomic<uint64_t> g_heartbeat_tsc;  // when it was first seen

// Without a beat for `stale_ticks` the engine has been killed: the hooks must not go on
// filling a ring that nobody reads. The time is stored before the beat, so that a thread
// which sees the beat sees its time.
bool IsEngineLost() {
  const uint32_t session = g_session.number.load(std::memory_order_acquire);
  const uint64_t beat =
      g_session.engine()->control.heartbeat.load(std::memory_order_relaxed);
  const uint64_t now = rt::ReadTsc();
  if (beat != g_seen_heartbeat.load(std::memory_order_acquire)) {
    g_heartbeat_tsc.store(now, std::memory_order_relaxed);
    g_seen_heartbeat.store(beat, std::memory_order_release);
    return false;
  }
  const uint64_t seen = g_heartbeat_tsc.load(std::memory_order_relaxed);
  if (now < seen || now - seen < hpd_attach_state.request.stale_ticks)
    return false;
  GoDormant(session, ClientError::kEngineLost);
  return true;
}

}  // namespace

ThreadSlot g_nested_slot;

void ExpectHeartbeat() {
  g_heartbeat_tsc.store(rt::ReadTsc(), std::memory_order_relaxed);
  g_seen_heartbeat.store(0, std::memory_order_release);
}

void GuardedAllocation::Decide() {
  if (HPD_UNLIKELY(hpd_attach_state.request.stack_end_at != 0)) {
    DiscoverLayoutLate();
    slot_->thread_id = g_session.layout.ThreadId(rt::ThreadPointer());
  }
  interval_ = slot_->interval;
  is_sampled_ =
      CountDown(*slot_, size_,
                g_session.engine()->control.interval.load(std::memory_order_relaxed)) ==
          SampleDecision::kSample &&
      (IsForkSlot(slot_) || !IsEngineLost());
  if (!is_sampled_ || !IsForkSlot(slot_))
    return;
  ThreadSlot* own = LeaveForkPending();
  is_sampled_ = own != nullptr;
  if (own == nullptr)
    NoteUnsampled(*slot_);
  slot_ = own != nullptr ? own : slot_;
}

}  // namespace heapprofd
