// What every hook of the attached client does around its call into the allocator.
#pragma once

#include <cstddef>
#include <cstdint>

#include "client/image/attach_image.h"
#include "client/image/flat_threads.h"
#include "client/recorder.h"
#include "client/session.h"
#include "rt/compiler.h"

#define HPD_HIDDEN __attribute__((visibility("hidden"), used))

namespace heapprofd {

// The thread's slot during such a call, without bytes left for ever: it sends the hooks
// of calls inside the allocator to their slow path.
extern ThreadSlot g_nested_slot;

// Behind the jump at the entry of a function.
template <typename Function>
inline Function* Original(unsigned allocator, Hook hook) {
  return reinterpret_cast<Function*>(
      hpd_attach_state.originals[allocator][static_cast<size_t>(hook)]);
}

inline bool IsSampled(const void* pointer) {
  return g_wiped.filter.MayContain(reinterpret_cast<uint64_t>(pointer));
}

// Sampling decision of one allocation, the guard around its call into the allocator, and
// what became of it.
class GuardedAllocation {
 public:
  GuardedAllocation(size_t size, const CallSite& site)
      : thread_(ThisThread()), size_(size) {
    if (thread_.outer_hook != 0) {
      if (site.stack < thread_.outer_hook)
        return;    // nested: the outer one counts
      EndGuard();  // the outer one was left by longjmp
    }
    slot_ = EnterSession();
    if (slot_ == nullptr)
      return;
    if (size < slot_->bytes_left) {
      slot_->bytes_left -= size;
      ++slot_->calls;
    } else {
      Decide();
    }
    thread_.own_slot = slot_;
    thread_.outer_hook = site.stack;
    thread_.slot = &g_nested_slot;
  }

  GuardedAllocation(const GuardedAllocation&) = delete;
  GuardedAllocation& operator=(const GuardedAllocation&) = delete;

  // `pointer` is what the allocator returned; nullptr: the call failed and never
  // happened.
  void Finish(void* pointer, const CallSite& site) {
    if (slot_ == nullptr)
      return;
    EndGuard();
    if (pointer == nullptr) {
      --slot_->calls;
      slot_->granted -= size_;
    } else if (is_sampled_) {
      RecordSample(*slot_, {reinterpret_cast<uint64_t>(pointer)}, size_, interval_, site);
    }
  }

  bool is_counted() const { return slot_ != nullptr; }

 private:
  void Decide();

  void EndGuard() {
    thread_.slot = thread_.own_slot;
    thread_.outer_hook = 0;
  }

  FlatThread& thread_;
  ThreadSlot* slot_ = nullptr;
  size_t size_;
  uint64_t interval_ = 0;
  bool is_sampled_ = false;
};

template <typename Real>
inline void* Allocate(size_t size, const CallSite& site, Real&& real) {
  GuardedAllocation allocation(size, site);
  void* pointer = real();
  allocation.Finish(pointer, site);
  return pointer;
}

template <typename Real>
inline void* Reallocate(void* old, size_t size, const CallSite& site, Real&& real) {
  GuardedAllocation allocation(size, site);
  const auto address = reinterpret_cast<uint64_t>(old);
  const bool was_sampled = old != nullptr && g_wiped.filter.Remove(address);
  if (was_sampled)
    RecordFree({address}, /*is_realloc=*/true);
  void* pointer = real();
  if (pointer == nullptr && size != 0 && was_sampled)
    RecordReallocFailed({address});
  allocation.Finish(pointer, site);
  return pointer;
}

}  // namespace heapprofd
