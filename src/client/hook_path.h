// What every hook does: the short way of a call that is not sampled, and the sampling
// decision around the real call of one that takes the slow path.
#pragma once

#include <cstddef>
#include <cstdint>

#include "client/forked_child.h"
#include "client/nesting.h"
#include "client/preload/allocator_report.h"
#include "client/preload/real_functions.h"
#include "client/recorder.h"
#include "client/sampler.h"
#include "client/session.h"
#include "rt/compiler.h"

namespace heapprofd {

inline bool IsSampled(const void* pointer) {
  return g_wiped.filter.MayContain(reinterpret_cast<uint64_t>(pointer));
}

// Counts an allocation that is not sampled; false: the slow path must look. One that then
// fails stays counted (small ones fail only when memory is out): to find out would cost
// the hook its tail call.
inline bool PassUnsampled(size_t size) {
  if (HPD_UNLIKELY(g_wiped.active.load(std::memory_order_relaxed) == 0))
    return false;
  ThreadSlot* slot = t_slot;
  if (HPD_UNLIKELY(size >= slot->bytes_left))
    return false;
  slot->bytes_left -= size;
  ++slot->calls;
  return true;
}

// The hook whose call into the allocator is under way. An allocator may serve one of its
// functions by another that is interposed, too: only the outer one counts.
struct OuterHook {
  uint64_t stack;  // its stack pointer; 0: there is none
  ThreadSlot* slot;
  uint64_t size;  // bytes that the slot has counted for it

  // The call failed and never happened.
  void TakeBack() {
    stack = 0;
    --slot->calls;
    slot->granted -= size;
  }
};

extern constinit thread_local OuterHook t_outer_hook
    __attribute__((tls_model("initial-exec")));

// Sampling decision of one allocation on the slow path, and what became of it.
class PendingAllocation {
 public:
  PendingAllocation(size_t size, const CallSite& site)
      : slot_(EnterSession()), size_(size) {
    // A stack above it means that the outer call was left by longjmp.
    if (t_outer_hook.stack != 0 && site.stack < t_outer_hook.stack)
      slot_ = nullptr;
    if (slot_ == nullptr)
      return;
    t_outer_hook = {.stack = site.stack, .slot = slot_, .size = size};
    AnswerAllocatorQuestion();
    if (size < slot_->bytes_left) {
      slot_->bytes_left -= size;
      ++slot_->calls;
      return;
    }
    interval_ = slot_->interval;
    is_sampled_ =
        CountDown(*slot_, size,
                  g_session.engine()->control.interval.load(std::memory_order_relaxed)) ==
            SampleDecision::kSample &&
        !IsNested(kMallocHeapId);
  }

  // `pointer` is what the allocator returned; nullptr: the call failed and never
  // happened.
  void Finish(void* pointer, const CallSite& site) {
    if (slot_ == nullptr)
      return;
    // Already taken back when the allocator has caught an exception of a hook inside.
    const bool is_outer = t_outer_hook.stack == site.stack;
    if (pointer == nullptr) {
      if (is_outer)
        t_outer_hook.TakeBack();
      return;
    }
    t_outer_hook.stack = 0;
    if (!is_sampled_)
      return;
    if (IsForkSlot(slot_))
      slot_ = LeaveForkPending();
    if (slot_ != nullptr)
      RecordSample(*slot_, {reinterpret_cast<uint64_t>(pointer)}, size_, interval_, site);
  }

 private:
  ThreadSlot* slot_;
  size_t size_;
  uint64_t interval_ = 0;
  bool is_sampled_ = false;
};

template <typename Real>
inline void* Allocate(size_t size, const CallSite& site, Real&& real) {
  PendingAllocation allocation(size, site);
  void* pointer = real();
  allocation.Finish(pointer, site);
  return pointer;
}

// `pointer` is about to go back to the allocator.
void ReportFree(void* pointer);

// The hooks may run before the session has begun, and then find no real functions yet.
inline void EnsureResolved() {
  if (HPD_UNLIKELY(g_real.malloc == nullptr))
    EnterSession();
}

}  // namespace heapprofd
