// libheapprofd_preload.so: the malloc family, interposed by LD_PRELOAD.
//
// An unsampled call checks the session's wiped word and the thread's countdown
// (allocation) or one filter bit (free), and jumps on to the program's own allocator: no
// lock, no libc, no system call, no cache line shared between threads is written.
// Everything else is the slow path, entered through a few instructions of assembly that
// note the caller's stack and frame pointer before the compiler can move them.
#include "client/preload/preload_hooks.h"

#include <cstddef>
#include <cstdint>

#include "client/engine_link/handshake_client.h"
#include "client/engine_link/service_client.h"
#include "client/hook_path.h"
#include "client/preload/allocator_report.h"
#include "client/preload/libc_symbols.h"
#include "client/preload/real_functions.h"
#include "client/recorder.h"
#include "client/recorder_table.h"
#include "client/session.h"
#include "client/slow_entry.h"
#include "rt/compiler.h"

using heapprofd::Allocate;
using heapprofd::AllocationFunction;
using heapprofd::EnsureResolved;
using heapprofd::g_real;
using heapprofd::IsAsleep;
using heapprofd::IsSampled;
using heapprofd::PassUnsampled;
using heapprofd::ReportFree;

namespace {

HPD_NOINLINE void FreeSampled(void* pointer) {
  ReportFree(pointer);
  g_real.free(pointer);
}

void* ReallocSlow(void* old, size_t size, const heapprofd::CallSite& site) {
  return heapprofd::RecordedReallocate(old, size, site,
                                       {.call =
                                            [](const heapprofd::RealCall& real) {
                                              return g_real.realloc(real.block,
                                                                    real.size);
                                            },
                                        .block = old,
                                        .size = size});
}

}  // namespace

namespace heapprofd {

constinit thread_local OuterHook t_outer_hook{};

void ReportFree(void* pointer) {
  const auto address = reinterpret_cast<uint64_t>(pointer);
  if (g_wiped.filter.Remove(address))
    RecordFree({address}, /*is_realloc=*/false);
}

void* RecordedAllocate(size_t size, const CallSite& site, const RealCall& real) {
  return Allocate(size, site, [&] { return real.call(real); });
}

void* RecordedReallocate(void* old,
                         size_t size,
                         const CallSite& site,
                         const RealCall& real) {
  PendingAllocation allocation(size, site);
  const auto address = reinterpret_cast<uint64_t>(old);
  const bool was_sampled = old != nullptr && g_wiped.filter.Remove(address);
  if (was_sampled)
    RecordFree({address}, /*is_realloc=*/true);
  void* pointer = real.call(real);
  if (pointer == nullptr && size != 0 && was_sampled)
    RecordReallocFailed({address});
  allocation.Finish(pointer, site);
  return pointer;
}

void RecordResized(void* block, size_t size, const CallSite& site) {
  PendingAllocation allocation(size, site);
  ReportFree(block);
  allocation.Finish(block, site);
}

void RecordFreed(void* block) {
  if (HPD_UNLIKELY(IsSampled(block)))
    ReportFree(block);
  EnsureResolved();
}

}  // namespace heapprofd

// Slow path entries. `stack` is the address of the return address in the hook's caller,
// `bp` its frame pointer.
extern "C" {

__attribute__((visibility("hidden"), used)) void* HpdMallocSlow(size_t size,
                                                                uint64_t stack,
                                                                uint64_t bp) {
  return Allocate(size, {stack, bp, AllocationFunction::kMalloc},
                  [&] { return g_real.malloc(size); });
}

__attribute__((visibility("hidden"), used)) void* HpdCallocSlow(size_t count,
                                                                size_t size,
                                                                uint64_t stack,
                                                                uint64_t bp) {
  size_t total = 0;
  if (__builtin_mul_overflow(count, size, &total)) {
    EnsureResolved();
    return g_real.calloc(count, size);  // fails, with the allocator's own errno
  }
  return Allocate(total, {stack, bp, AllocationFunction::kCalloc},
                  [&] { return g_real.calloc(count, size); });
}

__attribute__((visibility("hidden"), used)) void* HpdReallocSlow(void* old,
                                                                 size_t size,
                                                                 uint64_t stack,
                                                                 uint64_t bp) {
  return ReallocSlow(old, size, {stack, bp, AllocationFunction::kRealloc});
}

__attribute__((visibility("hidden"), used)) void* HpdReallocarraySlow(void* old,
                                                                      size_t size,
                                                                      uint64_t stack,
                                                                      uint64_t bp) {
  return ReallocSlow(old, size, {stack, bp, AllocationFunction::kReallocarray});
}

__attribute__((visibility("hidden"), used)) void* HpdAlignedAllocSlow(size_t alignment,
                                                                      size_t size,
                                                                      uint64_t stack,
                                                                      uint64_t bp) {
  return Allocate(size, {stack, bp, AllocationFunction::kAlignedAlloc},
                  [&] { return g_real.aligned_alloc(alignment, size); });
}

__attribute__((visibility("hidden"), used)) void* HpdMemalignSlow(size_t alignment,
                                                                  size_t size,
                                                                  uint64_t stack,
                                                                  uint64_t bp) {
  return Allocate(size, {stack, bp, AllocationFunction::kMemalign},
                  [&] { return g_real.memalign(alignment, size); });
}

__attribute__((visibility("hidden"), used)) void* HpdVallocSlow(size_t size,
                                                                uint64_t stack,
                                                                uint64_t bp) {
  return Allocate(size, {stack, bp, AllocationFunction::kValloc},
                  [&] { return g_real.valloc(size); });
}

__attribute__((visibility("hidden"), used)) void* HpdPvallocSlow(size_t size,
                                                                 uint64_t stack,
                                                                 uint64_t bp) {
  return Allocate(size, {stack, bp, AllocationFunction::kPvalloc},
                  [&] { return g_real.pvalloc(size); });
}

__attribute__((visibility("hidden"), used)) int HpdPosixMemalignSlow(
    void** result, size_t alignment, size_t size, uint64_t stack, uint64_t bp) {
  int error = 0;
  Allocate(size, {stack, bp, AllocationFunction::kPosixMemalign}, [&]() -> void* {
    error = g_real.posix_memalign(result, alignment, size);
    return error == 0 ? *result : nullptr;
  });
  return error;
}

}  // extern "C"

HPD_SLOW_ENTRY(HpdMallocEntry, HpdMallocSlow, 1);
HPD_SLOW_ENTRY(HpdCallocEntry, HpdCallocSlow, 2);
HPD_SLOW_ENTRY(HpdReallocEntry, HpdReallocSlow, 2);
HPD_SLOW_ENTRY(HpdReallocarrayEntry, HpdReallocarraySlow, 2);
HPD_SLOW_ENTRY(HpdAlignedAllocEntry, HpdAlignedAllocSlow, 2);
HPD_SLOW_ENTRY(HpdMemalignEntry, HpdMemalignSlow, 2);
HPD_SLOW_ENTRY(HpdVallocEntry, HpdVallocSlow, 1);
HPD_SLOW_ENTRY(HpdPvallocEntry, HpdPvallocSlow, 1);
HPD_SLOW_ENTRY(HpdPosixMemalignEntry, HpdPosixMemalignSlow, 3);

extern "C" {

void* HpdMallocEntry(size_t size);
void* HpdCallocEntry(size_t count, size_t size);
void* HpdReallocEntry(void* old, size_t size);
void* HpdReallocarrayEntry(void* old, size_t size);
void* HpdAlignedAllocEntry(size_t alignment, size_t size);
void* HpdMemalignEntry(size_t alignment, size_t size);
void* HpdVallocEntry(size_t size);
void* HpdPvallocEntry(size_t size);
int HpdPosixMemalignEntry(void** result, size_t alignment, size_t size);

HPD_EXPORT void* malloc(size_t size) {
  if (HPD_LIKELY(PassUnsampled(size)) || IsAsleep())
    return g_real.malloc(size);
  return HpdMallocEntry(size);
}

HPD_EXPORT void* calloc(size_t count, size_t size) {
  size_t total = 0;
  if (HPD_LIKELY(!__builtin_mul_overflow(count, size, &total) && PassUnsampled(total)) ||
      IsAsleep())
    return g_real.calloc(count, size);
  return HpdCallocEntry(count, size);
}

HPD_EXPORT void* realloc(void* old, size_t size) {
  if (HPD_LIKELY(!IsSampled(old) && size != 0 && PassUnsampled(size)))
    return g_real.realloc(old, size);
  return HpdReallocEntry(old, size);
}

// Every allocator defines it as realloc of the product.
HPD_EXPORT void* reallocarray(void* old, size_t count, size_t size) {
  size_t total = 0;
  if (HPD_UNLIKELY(__builtin_mul_overflow(count, size, &total))) {
    EnsureResolved();
    return g_real.reallocarray != nullptr
               ? g_real.reallocarray(old, count, size)
               : g_real.calloc(count, size);  // fails with ENOMEM
  }
  if (HPD_LIKELY(!IsSampled(old) && total != 0 && PassUnsampled(total)))
    return g_real.realloc(old, total);
  return HpdReallocarrayEntry(old, total);
}

HPD_EXPORT void free(void* pointer) {
  if (HPD_UNLIKELY(IsSampled(pointer)))
    return FreeSampled(pointer);
  g_real.free(pointer);
}

HPD_EXPORT void free_sized(void* pointer, size_t size) {
  if (HPD_UNLIKELY(IsSampled(pointer)))
    ReportFree(pointer);
  EnsureResolved();
  g_real.free_sized(pointer, size);
}

HPD_EXPORT void free_aligned_sized(void* pointer, size_t alignment, size_t size) {
  if (HPD_UNLIKELY(IsSampled(pointer)))
    ReportFree(pointer);
  EnsureResolved();
  g_real.free_aligned_sized(pointer, alignment, size);
}

HPD_EXPORT int posix_memalign(void** result, size_t alignment, size_t size) {
  return HpdPosixMemalignEntry(result, alignment, size);
}

HPD_EXPORT void* aligned_alloc(size_t alignment, size_t size) {
  return HpdAlignedAllocEntry(alignment, size);
}

HPD_EXPORT void* memalign(size_t alignment, size_t size) {
  return HpdMemalignEntry(alignment, size);
}

HPD_EXPORT void* valloc(size_t size) {
  return HpdVallocEntry(size);
}

HPD_EXPORT void* pvalloc(size_t size) {
  return HpdPvallocEntry(size);
}

HPD_EXPORT size_t malloc_usable_size(void* pointer) {
  EnsureResolved();
  return g_real.malloc_usable_size(pointer);
}

}  // extern "C"

const bool heapprofd::g_hooks_malloc = true;

bool heapprofd::PrepareShell() {
  if (!ResolveRealFunctions())
    return false;
  if (!IsProfilingForbidden())  // by whom a system call could be the end of it
    LeadLibcHere();
  return true;
}

// Where libheapprofd_client finds this library: see client/recorder_table.h.
// NOLINTNEXTLINE(readability-identifier-naming)
extern "C" HPD_EXPORT const heapprofd::RecorderTable* heapprofd_recorder_v2() {
  return &heapprofd::OwnRecorder();
}

namespace {

// Starts the session even in a program that never allocates, so that the engine can say
// so.
__attribute__((constructor)) void StartSession() {
  heapprofd::EnterSession();
}

__attribute__((destructor)) void EndSession() {
  heapprofd::ReportExit();
  heapprofd::WaitUntilDrained();
}

}  // namespace
