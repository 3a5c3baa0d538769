// libheapprofd_preload.so: the malloc family and operator new/delete, interposed by
// LD_PRELOAD.
//
// An unsampled call checks the session's wiped word and the thread's countdown
// (allocation) or one filter bit (free), and jumps on to the program's own allocator: no
// lock, no libc, no system call, no cache line shared between threads is written.
// Everything else is the slow path, entered through a few instructions of assembly that
// note the caller's stack and frame pointer before the compiler can move them.
#include "client/preload_hooks.h"

#include <cstddef>
#include <cstdint>

#include "client/allocator_report.h"
#include "client/nesting.h"
#include "client/real_functions.h"
#include "client/recorder.h"
#include "client/recorder_table.h"
#include "client/sampler.h"
#include "client/service_client.h"
#include "client/session.h"
#include "client/slow_entry.h"
#include "rt/compiler.h"

using heapprofd::CallSite;
using heapprofd::g_real;
using heapprofd::g_wiped;
using heapprofd::IsAsleep;
using heapprofd::ThreadSlot;

namespace {

bool IsSampled(const void* pointer) {
  return g_wiped.filter.MayContain(reinterpret_cast<uint64_t>(pointer));
}

// Counts an allocation that is not sampled; false: the slow path must look. One that then
// fails stays counted (small ones fail only when memory is out): to find out would cost
// the hook its tail call.
inline bool PassUnsampled(size_t size) {
  if (HPD_UNLIKELY(g_wiped.active.load(std::memory_order_relaxed) == 0))
    return false;
  ThreadSlot* slot = heapprofd::t_slot;
  if (HPD_UNLIKELY(size >= slot->bytes_left))
    return false;
  slot->bytes_left -= size;
  ++slot->calls;
  return true;
}

// Stack pointer of the hook whose call into the allocator is under way, 0: none. An
// allocator may serve one of its functions by another that is interposed, too: only the
// outer one counts. A stack above it means that the outer call was left by an exception.
__attribute__((tls_model("initial-exec"))) thread_local uint64_t t_outer_hook = 0;

// Sampling decision of one allocation on the slow path, and what became of it.
class PendingAllocation {
 public:
  PendingAllocation(size_t size, const CallSite& site)
      : slot_(heapprofd::EnterSession()), size_(size) {
    if (t_outer_hook != 0 && site.stack < t_outer_hook)
      slot_ = nullptr;
    if (slot_ == nullptr)
      return;
    t_outer_hook = site.stack;
    heapprofd::AnswerAllocatorQuestion();
    if (size < slot_->bytes_left) {
      slot_->bytes_left -= size;
      ++slot_->calls;
      return;
    }
    interval_ = slot_->interval;
    is_sampled_ = heapprofd::CountDown(*slot_, size,
                                       heapprofd::g_session.engine->control.interval.load(
                                           std::memory_order_relaxed)) ==
                      heapprofd::SampleDecision::kSample &&
                  !heapprofd::IsNested(heapprofd::kMallocHeapId);
  }

  // `pointer` is what the allocator returned; nullptr: the call failed and never
  // happened.
  void Finish(void* pointer, const CallSite& site) {
    if (slot_ == nullptr)
      return;
    t_outer_hook = 0;
    if (pointer == nullptr) {
      --slot_->calls;
      slot_->granted -= size_;
      return;
    }
    if (!is_sampled_)
      return;
    if (heapprofd::g_session.state.load(std::memory_order_acquire) ==
        heapprofd::SessionState::kForkPending)
      slot_ = heapprofd::LeaveForkPending(slot_);
    if (slot_ != nullptr)
      heapprofd::RecordSample(*slot_, {reinterpret_cast<uint64_t>(pointer)}, size_,
                              interval_, site);
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

void ReportFree(void* pointer) {
  const auto address = reinterpret_cast<uint64_t>(pointer);
  if (g_wiped.filter.Remove(address))
    heapprofd::RecordFree({address}, /*is_realloc=*/false);
}

HPD_NOINLINE void FreeSampled(void* pointer) {
  ReportFree(pointer);
  g_real.free(pointer);
}

// The hooks may run before the session has begun, and then find no real functions yet.
inline void EnsureResolved() {
  if (HPD_UNLIKELY(g_real.malloc == nullptr))
    heapprofd::EnterSession();
}

}  // namespace

namespace heapprofd {

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
// `bp` its rbp.
extern "C" {

__attribute__((visibility("hidden"), used)) void* HpdMallocSlow(size_t size,
                                                                uint64_t stack,
                                                                uint64_t bp) {
  return Allocate(size, {stack, bp}, [&] { return g_real.malloc(size); });
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
  return Allocate(total, {stack, bp}, [&] { return g_real.calloc(count, size); });
}

__attribute__((visibility("hidden"), used)) void* HpdReallocSlow(void* old,
                                                                 size_t size,
                                                                 uint64_t stack,
                                                                 uint64_t bp) {
  return heapprofd::RecordedReallocate(old, size, {stack, bp},
                                       {.call =
                                            [](const heapprofd::RealCall& real) {
                                              return g_real.realloc(real.block,
                                                                    real.size);
                                            },
                                        .block = old,
                                        .size = size});
}

__attribute__((visibility("hidden"), used)) void* HpdAlignedAllocSlow(size_t alignment,
                                                                      size_t size,
                                                                      uint64_t stack,
                                                                      uint64_t bp) {
  return Allocate(size, {stack, bp},
                  [&] { return g_real.aligned_alloc(alignment, size); });
}

__attribute__((visibility("hidden"), used)) void* HpdMemalignSlow(size_t alignment,
                                                                  size_t size,
                                                                  uint64_t stack,
                                                                  uint64_t bp) {
  return Allocate(size, {stack, bp}, [&] { return g_real.memalign(alignment, size); });
}

__attribute__((visibility("hidden"), used)) void* HpdVallocSlow(size_t size,
                                                                uint64_t stack,
                                                                uint64_t bp) {
  return Allocate(size, {stack, bp}, [&] { return g_real.valloc(size); });
}

__attribute__((visibility("hidden"), used)) void* HpdPvallocSlow(size_t size,
                                                                 uint64_t stack,
                                                                 uint64_t bp) {
  return Allocate(size, {stack, bp}, [&] { return g_real.pvalloc(size); });
}

__attribute__((visibility("hidden"), used)) int HpdPosixMemalignSlow(
    void** result, size_t alignment, size_t size, uint64_t stack, uint64_t bp) {
  int error = 0;
  Allocate(size, {stack, bp}, [&]() -> void* {
    error = g_real.posix_memalign(result, alignment, size);
    return error == 0 ? *result : nullptr;
  });
  return error;
}

}  // extern "C"

HPD_SLOW_ENTRY(HpdMallocEntry, HpdMallocSlow, rsi, rdx);
HPD_SLOW_ENTRY(HpdCallocEntry, HpdCallocSlow, rdx, rcx);
HPD_SLOW_ENTRY(HpdReallocEntry, HpdReallocSlow, rdx, rcx);
HPD_SLOW_ENTRY(HpdAlignedAllocEntry, HpdAlignedAllocSlow, rdx, rcx);
HPD_SLOW_ENTRY(HpdMemalignEntry, HpdMemalignSlow, rdx, rcx);
HPD_SLOW_ENTRY(HpdVallocEntry, HpdVallocSlow, rsi, rdx);
HPD_SLOW_ENTRY(HpdPvallocEntry, HpdPvallocSlow, rsi, rdx);
HPD_SLOW_ENTRY(HpdPosixMemalignEntry, HpdPosixMemalignSlow, rcx, r8);

extern "C" {

void* HpdMallocEntry(size_t size);
void* HpdCallocEntry(size_t count, size_t size);
void* HpdReallocEntry(void* old, size_t size);
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

// Every allocator defines it as realloc of the product, so realloc's hook does the
// recording.
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
  return HpdReallocEntry(old, total);
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

// Unloading makes addresses reusable by other code: the rules learnt for them must not
// outlive it.
HPD_EXPORT int dlclose(void* handle) {
  EnsureResolved();
  // What was sampled in this module must be looked up while it is still there.
  heapprofd::WaitUntilDrained();
  const int result = g_real.dlclose(handle);
  heapprofd::RecordModulesChanged();
  return result;
}

// operator new and delete. When they come from libstdc++ they reach malloc and free above
// by themselves, and nothing is done here.
#define HPD_NEW(field, name, may_nest)                                            \
  __attribute__((visibility("hidden"), used)) void* HpdSlow_##field(              \
      size_t size, size_t a, size_t b, uint64_t stack, uint64_t bp) {             \
    return Allocate(size, {stack, bp}, [&] { return g_real.field(size, a, b); }); \
  }                                                                               \
  HPD_SLOW_ENTRY(HpdEntry_##field, HpdSlow_##field, rcx, r8);                     \
  void* HpdEntry_##field(size_t size, size_t a, size_t b);                        \
  HPD_EXPORT void* name(size_t size, size_t a, size_t b) {                        \
    EnsureResolved();                                                             \
    if (HPD_LIKELY(!g_real.record_new || (!(may_nest) && PassUnsampled(size))))   \
      return g_real.field(size, a, b);                                            \
    return HpdEntry_##field(size, a, b);                                          \
  }
HPD_OPERATOR_NEW_LIST(HPD_NEW)

#define HPD_DELETE(field, name)                                \
  HPD_EXPORT void name(void* pointer, size_t a, size_t b) {    \
    EnsureResolved();                                          \
    if (HPD_UNLIKELY(g_real.record_new && IsSampled(pointer))) \
      ReportFree(pointer);                                     \
    g_real.field(pointer, a, b);                               \
  }
HPD_OPERATOR_DELETE_LIST(HPD_DELETE)

}  // extern "C"

bool heapprofd::PrepareShell() {
  return ResolveRealFunctions();
}

// Where libheapprofd_client finds this library: see client/recorder_table.h.
// NOLINTNEXTLINE(readability-identifier-naming)
extern "C" HPD_EXPORT const heapprofd::RecorderTable* heapprofd_recorder_v1() {
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
