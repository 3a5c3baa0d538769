// jemalloc's own interface (mallocx and the like), interposed by LD_PRELOAD.
//
// Over another allocator these names do not exist, and a program that looks whether they
// do finds ours: then they do what jemalloc documents by means of the allocator that is
// there (real_functions.cc), blocks being interchangeable with malloc's. sallocx and
// nallocx are there for such a program only; they record nothing.
//
// xallocx resizes in place or not at all, and returns the size that the block has then: a
// block whose size has not changed is left as it was recorded.
#include <cstddef>
#include <cstdint>

#include "client/preload/preload_hooks.h"
#include "client/preload/real_functions.h"
#include "client/session.h"
#include "client/slow_entry.h"
#include "rt/compiler.h"

using heapprofd::AllocationFunction;
using heapprofd::g_real;
using heapprofd::RealCall;

namespace {

void EnsureResolved() {
  if (HPD_UNLIKELY(g_real.mallocx == nullptr))
    heapprofd::EnterSession();
}

}  // namespace

extern "C" {

__attribute__((visibility("hidden"), used)) void* HpdMallocxSlow(size_t size,
                                                                 int flags,
                                                                 uint64_t stack,
                                                                 uint64_t bp) {
  return heapprofd::RecordedAllocate(
      size, {stack, bp, AllocationFunction::kMallocx},
      {.call = [](const RealCall& real) { return g_real.mallocx(real.size, real.flags); },
       .size = size,
       .flags = flags});
}

__attribute__((visibility("hidden"), used)) void* HpdRallocxSlow(
    void* old, size_t size, int flags, uint64_t stack, uint64_t bp) {
  return heapprofd::RecordedReallocate(
      old, size, {stack, bp, AllocationFunction::kRallocx},
      {.call =
           [](const RealCall& real) {
             return g_real.rallocx(real.block, real.size, real.flags);
           },
       .block = old,
       .size = size,
       .flags = flags});
}

// NOLINTNEXTLINE(readability-function-size)
__attribute__((visibility("hidden"), used)) size_t HpdXallocxSlow(
    void* block, size_t size, size_t extra, int flags, uint64_t stack, uint64_t bp) {
  heapprofd::EnterSession();
  const size_t before = g_real.sallocx(block, flags);
  const size_t now = g_real.xallocx(block, size, extra, flags);
  if (now != before)
    heapprofd::RecordResized(block, size, {stack, bp, AllocationFunction::kXallocx});
  return now;
}

HPD_SLOW_ENTRY(HpdMallocxEntry, HpdMallocxSlow, 2);
HPD_SLOW_ENTRY(HpdRallocxEntry, HpdRallocxSlow, 3);
HPD_SLOW_ENTRY(HpdXallocxEntry, HpdXallocxSlow, 4);

void* HpdMallocxEntry(size_t size, int flags);
void* HpdRallocxEntry(void* old, size_t size, int flags);
size_t HpdXallocxEntry(void* block, size_t size, size_t extra, int flags);

HPD_EXPORT void* mallocx(size_t size, int flags) {
  return HpdMallocxEntry(size, flags);
}

HPD_EXPORT void* rallocx(void* old, size_t size, int flags) {
  return HpdRallocxEntry(old, size, flags);
}

HPD_EXPORT size_t xallocx(void* block, size_t size, size_t extra, int flags) {
  return HpdXallocxEntry(block, size, extra, flags);
}

HPD_EXPORT void dallocx(void* block, int flags) {
  heapprofd::RecordFreed(block);
  g_real.dallocx(block, flags);
}

HPD_EXPORT void sdallocx(void* block, size_t size, int flags) {
  heapprofd::RecordFreed(block);
  g_real.sdallocx(block, size, flags);
}

HPD_EXPORT size_t sallocx(const void* block, int flags) {
  EnsureResolved();
  return g_real.sallocx(block, flags);
}

HPD_EXPORT size_t nallocx(size_t size, int flags) {
  EnsureResolved();
  return g_real.nallocx(size, flags);
}

}  // extern "C"
