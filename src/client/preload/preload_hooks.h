// What hooks outside preload_hooks.cc need of its slow path: allocations by functions
// that few programs call, so that nothing of them has to be fast.
#pragma once

#include <cstddef>

#include "client/recorder.h"

namespace heapprofd {

// A call into the allocator with its arguments; which of them count is the call's affair.
struct RealCall {
  void* (*call)(const RealCall&);
  void* block = nullptr;
  size_t size = 0;
  int flags = 0;
};

// An allocation of `size` bytes: counted, and recorded when it is sampled and succeeds.
void* RecordedAllocate(size_t size, const CallSite& site, const RealCall& real);

// As realloc: `old` is gone when the call succeeds.
void* RecordedReallocate(void* old,
                         size_t size,
                         const CallSite& site,
                         const RealCall& real);

// `block` has been resized where it is.
void RecordResized(void* block, size_t size, const CallSite& site);

// `block` is about to go back to the allocator, by a function of g_real, which is ready
// afterwards.
void RecordFreed(void* block);

}  // namespace heapprofd
