// Hooks of the attached client. The entry of each of an allocator's functions is a jump
// to one of these, and `originals` leads behind that jump.
//
// They differ from the preload library's in what they may rely on:
// - Calls inside the allocator come through its patched entries, too (glibc's realloc
//   calls malloc). So a call into a function that may do that is guarded: until it
//   returns, the thread's slot is one that sends every hook to its slow path, which then
//   only passes on.
// - No exception may cross our frames, which have no unwind information that the target
//   knows of. A throwing operator new is therefore served by its nothrow twin, and
//   jumped to without any frame of ours when that fails.
// - No system call is made in a process under seccomp: the engine never lets the ring
//   block there.
#include <cstddef>
#include <cstdint>

#include "client/attach_image.h"
#include "client/flat_threads.h"
#include "client/recorder.h"
#include "client/sampler.h"
#include "client/session.h"
#include "rt/compiler.h"
#include "rt/syscall.h"

using heapprofd::CallSite;
using heapprofd::FlatThread;
using heapprofd::g_session;
using heapprofd::g_wiped;
using heapprofd::Hook;
using heapprofd::ThreadSlot;

namespace {

ThreadSlot g_nested_slot;  // without bytes left, for ever

std::atomic<uint64_t> g_seen_heartbeat;
std::atomic<uint64_t> g_heartbeat_tsc;  // when it was first seen

template <typename Function>
inline Function* Original(unsigned allocator, Hook hook) {
  return reinterpret_cast<Function*>(
      hpd_attach_state.originals[allocator][static_cast<size_t>(hook)]);
}

inline bool IsSampled(const void* pointer) {
  return g_wiped.filter.MayContain(reinterpret_cast<uint64_t>(pointer));
}

// Counts an allocation that is not sampled; false: the slow path must look.
inline bool PassUnsampled(size_t size) {
  if (HPD_UNLIKELY(g_wiped.active.load(std::memory_order_relaxed) == 0))
    return false;
  const uint64_t thread_pointer = heapprofd::rt::ThreadPointer();
  const FlatThread& thread =
      heapprofd::g_flat_threads[heapprofd::FlatThreadIndex(thread_pointer)];
  // Searching further is left to the slow path: a call there would cost a frame here.
  if (HPD_UNLIKELY(thread.thread_pointer.load(std::memory_order_relaxed) !=
                   thread_pointer))
    return false;
  ThreadSlot* slot = thread.slot;
  if (HPD_UNLIKELY(size >= slot->bytes_left))
    return false;
  slot->bytes_left -= size;
  ++slot->calls;
  return true;
}

// Without a beat for `stale_ticks` the engine has been killed: the hooks must not go on
// filling a ring that nobody reads. The time is stored before the beat, so that a thread
// which sees the beat sees its time.
bool IsEngineLost() {
  const uint64_t beat =
      g_session.engine()->control.heartbeat.load(std::memory_order_relaxed);
  const uint64_t now = heapprofd::rt::ReadTsc();
  if (beat != g_seen_heartbeat.load(std::memory_order_acquire)) {
    g_heartbeat_tsc.store(now, std::memory_order_relaxed);
    g_seen_heartbeat.store(beat, std::memory_order_release);
    return false;
  }
  const uint64_t seen = g_heartbeat_tsc.load(std::memory_order_relaxed);
  if (now < seen || now - seen < hpd_attach_state.request.stale_ticks)
    return false;
  heapprofd::GoDormant(heapprofd::ClientError::kEngineLost);
  return true;
}

// Pointer and size arguments of all functions that free fit three registers.
using FreeFunction = void(void*, size_t, size_t);

HPD_NOINLINE void FreeSampled(void* pointer, size_t a, size_t b, FreeFunction* real) {
  const auto address = reinterpret_cast<uint64_t>(pointer);
  if (g_wiped.filter.Remove(address))
    heapprofd::RecordFree({address}, /*is_realloc=*/false);
  real(pointer, a, b);
}

// Sampling decision of one allocation, the guard around its call into the allocator, and
// what became of it.
class GuardedAllocation {
 public:
  GuardedAllocation(size_t size, const CallSite& site)
      : thread_(heapprofd::ThisThread()), size_(size) {
    if (thread_.outer_hook != 0) {
      if (site.stack < thread_.outer_hook)
        return;    // nested: the outer one counts
      EndGuard();  // the outer one was left by longjmp
    }
    slot_ = heapprofd::EnterSession();
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
      heapprofd::RecordSample(*slot_, {reinterpret_cast<uint64_t>(pointer)}, size_,
                              interval_, site);
    }
  }

  bool is_counted() const { return slot_ != nullptr; }

 private:
  HPD_NOINLINE void Decide() {
    if (HPD_UNLIKELY(hpd_attach_state.request.stack_end_at != 0))
      heapprofd::DiscoverLayoutLate();
    interval_ = slot_->interval;
    is_sampled_ =
        heapprofd::CountDown(
            *slot_, size_,
            g_session.engine()->control.interval.load(std::memory_order_relaxed)) ==
            heapprofd::SampleDecision::kSample &&
        !IsEngineLost();
  }

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
    heapprofd::RecordFree({address}, /*is_realloc=*/true);
  void* pointer = real();
  if (pointer == nullptr && size != 0 && was_sampled)
    heapprofd::RecordReallocFailed({address});
  allocation.Finish(pointer, site);
  return pointer;
}

using NewFunction = void*(size_t, size_t, size_t);

const char g_nothrow = 0;  // std::nothrow of the operators: only its address is passed

}  // namespace

void heapprofd::ExpectHeartbeat() {
  g_heartbeat_tsc.store(rt::ReadTsc(), std::memory_order_relaxed);
  g_seen_heartbeat.store(0, std::memory_order_release);
}

extern "C" {

#define HPD_HIDDEN __attribute__((visibility("hidden"), used))

// As many parameters as an entry has registers to hand on; macro arguments that are
// pasted. NOLINTBEGIN(readability-function-size,bugprone-macro-parentheses)

// Slow paths. `stack` is the address of the return address in the hook's caller, `bp` its
// rbp, `allocator` says whose function it is.
HPD_HIDDEN void* HpdMallocSlow(size_t size,
                               uint64_t stack,
                               uint64_t bp,
                               unsigned allocator) {
  return Allocate(size, {stack, bp}, [&] {
    return Original<void*(size_t)>(allocator, Hook::kMalloc)(size);
  });
}

HPD_HIDDEN void* HpdVallocSlow(size_t size,
                               uint64_t stack,
                               uint64_t bp,
                               unsigned allocator) {
  return Allocate(size, {stack, bp}, [&] {
    return Original<void*(size_t)>(allocator, Hook::kValloc)(size);
  });
}

HPD_HIDDEN void* HpdPvallocSlow(size_t size,
                                uint64_t stack,
                                uint64_t bp,
                                unsigned allocator) {
  return Allocate(size, {stack, bp}, [&] {
    return Original<void*(size_t)>(allocator, Hook::kPvalloc)(size);
  });
}

HPD_HIDDEN void* HpdCallocSlow(
    size_t count, size_t size, uint64_t stack, uint64_t bp, unsigned allocator) {
  auto* real = Original<void*(size_t, size_t)>(allocator, Hook::kCalloc);
  size_t total = 0;
  if (__builtin_mul_overflow(count, size, &total))
    return real(count, size);  // fails, with the allocator's own errno
  return Allocate(total, {stack, bp}, [&] { return real(count, size); });
}

HPD_HIDDEN void* HpdReallocSlow(
    void* old, size_t size, uint64_t stack, uint64_t bp, unsigned allocator) {
  return Reallocate(old, size, {stack, bp}, [&] {
    return Original<void*(void*, size_t)>(allocator, Hook::kRealloc)(old, size);
  });
}

// Every allocator defines it as realloc of the product.
HPD_HIDDEN void* HpdReallocarraySlow(void* old,
                                     size_t count,
                                     size_t size,
                                     uint64_t stack,
                                     uint64_t bp,
                                     unsigned allocator) {
  size_t total = 0;
  if (__builtin_mul_overflow(count, size, &total))
    return Original<void*(void*, size_t, size_t)>(allocator, Hook::kReallocarray)(
        old, count, size);
  return HpdReallocSlow(old, total, stack, bp, allocator);
}

HPD_HIDDEN void* HpdMemalignSlow(
    size_t alignment, size_t size, uint64_t stack, uint64_t bp, unsigned allocator) {
  return Allocate(size, {stack, bp}, [&] {
    return Original<void*(size_t, size_t)>(allocator, Hook::kMemalign)(alignment, size);
  });
}

HPD_HIDDEN void* HpdAlignedAllocSlow(
    size_t alignment, size_t size, uint64_t stack, uint64_t bp, unsigned allocator) {
  return Allocate(size, {stack, bp}, [&] {
    return Original<void*(size_t, size_t)>(allocator, Hook::kAlignedAlloc)(alignment,
                                                                           size);
  });
}

HPD_HIDDEN int HpdPosixMemalignSlow(void** result,
                                    size_t alignment,
                                    size_t size,
                                    uint64_t stack,
                                    uint64_t bp,
                                    unsigned allocator) {
  int error = 0;
  Allocate(size, {stack, bp}, [&]() -> void* {
    error = Original<int(void**, size_t, size_t)>(allocator, Hook::kPosixMemalign)(
        result, alignment, size);
    return error == 0 ? *result : nullptr;
  });
  return error;
}

// Of the throwing operators. nullptr: the operator itself must be called, because the
// call is nested, or to fail in its own way.
#define HPD_NEW_SLOW(name, twin, ...)                                                    \
  HPD_HIDDEN void* HpdNew##name##Slow(size_t size, size_t alignment, size_t,             \
                                      uint64_t stack, uint64_t bp, unsigned allocator) { \
    auto* real = Original<NewFunction>(allocator, Hook::k##twin);                        \
    const auto nothrow = reinterpret_cast<size_t>(&g_nothrow);                           \
    static_cast<void>(alignment);                                                        \
    GuardedAllocation allocation(size, {stack, bp});                                     \
    if (!allocation.is_counted())                                                        \
      return nullptr;                                                                    \
    void* pointer = real(__VA_ARGS__);                                                   \
    allocation.Finish(pointer, {stack, bp});                                             \
    return pointer;                                                                      \
  }
HPD_NEW_SLOW(, NewNothrow, size, nothrow, 0)
HPD_NEW_SLOW(Array, NewArrayNothrow, size, nothrow, 0)
HPD_NEW_SLOW(Aligned, NewAlignedNothrow, size, alignment, nothrow)
HPD_NEW_SLOW(ArrayAligned, NewArrayAlignedNothrow, size, alignment, nothrow)

#define HPD_NEW_NOTHROW_SLOW(name)                                                  \
  HPD_HIDDEN void* Hpd##name##Slow(size_t size, size_t a, size_t b, uint64_t stack, \
                                   uint64_t bp, unsigned allocator) {               \
    return Allocate(size, {stack, bp}, [&] {                                        \
      return Original<NewFunction>(allocator, Hook::k##name)(size, a, b);           \
    });                                                                             \
  }
HPD_NEW_NOTHROW_SLOW(NewNothrow)
HPD_NEW_NOTHROW_SLOW(NewArrayNothrow)
HPD_NEW_NOTHROW_SLOW(NewAlignedNothrow)
HPD_NEW_NOTHROW_SLOW(NewArrayAlignedNothrow)

// jemalloc's own interface.
HPD_HIDDEN void* HpdMallocxSlow(
    size_t size, int flags, uint64_t stack, uint64_t bp, unsigned allocator) {
  return Allocate(size, {stack, bp}, [&] {
    return Original<void*(size_t, int)>(allocator, Hook::kMallocx)(size, flags);
  });
}

HPD_HIDDEN void* HpdRallocxSlow(
    void* old, size_t size, int flags, uint64_t stack, uint64_t bp, unsigned allocator) {
  return Reallocate(old, size, {stack, bp}, [&] {
    return Original<void*(void*, size_t, int)>(allocator, Hook::kRallocx)(old, size,
                                                                          flags);
  });
}

// Resizes in place or not at all, and returns the size that the block has then: a block
// whose size has not changed is left as it was recorded.
#define HPD_XALLOCX_SLOW(number)                                                      \
  HPD_HIDDEN size_t HpdXallocxSlow_##number(void* block, size_t size, size_t extra,   \
                                            int flags, uint64_t stack, uint64_t bp) { \
    const size_t before =                                                             \
        Original<size_t(const void*, int)>(number, Hook::kSallocx)(block, flags);     \
    const size_t now = Original<size_t(void*, size_t, size_t, int)>(                  \
        number, Hook::kXallocx)(block, size, extra, flags);                           \
    if (now != before) {                                                              \
      const CallSite site{stack, bp};                                                 \
      GuardedAllocation allocation(size, site);                                       \
      const auto address = reinterpret_cast<uint64_t>(block);                         \
      if (IsSampled(block) && g_wiped.filter.Remove(address))                         \
        heapprofd::RecordFree({address}, /*is_realloc=*/false);                       \
      allocation.Finish(block, site);                                                 \
    }                                                                                 \
    return now;                                                                       \
  }                                                                                   \
  asm(".pushsection .text\n.hidden HpdHook_Xallocx_" #number                          \
      "\n.globl HpdHook_Xallocx_" #number "\n.type HpdHook_Xallocx_" #number          \
      ", @function\nHpdHook_Xallocx_" #number                                         \
      ":\n"                                                                           \
      "mov %rsp, %r8\n"                                                               \
      "mov %rbp, %r9\n"                                                               \
      "jmp HpdXallocxSlow_" #number                                                   \
      "\n"                                                                            \
      ".size HpdHook_Xallocx_" #number ", .-HpdHook_Xallocx_" #number "\n.popsection\n")
HPD_XALLOCX_SLOW(0);
HPD_XALLOCX_SLOW(1);
HPD_XALLOCX_SLOW(2);
HPD_XALLOCX_SLOW(3);

// Unloading makes addresses reusable by other code: the rules learnt for them must not
// outlive it.
HPD_HIDDEN int HpdDlcloseSlow(void* handle, uint64_t, uint64_t, unsigned allocator) {
  // What was sampled in this module must be looked up while it is still there.
  if (hpd_attach_state.request.may_wait != 0)
    heapprofd::WaitUntilDrained();
  const int result = Original<int(void*)>(allocator, Hook::kDlclose)(handle);
  heapprofd::RecordModulesChanged();
  return result;
}

}  // extern "C"

// HPD_ENTRY(hook, slow function, registers for stack, bp and allocator, number of the
// allocator): notes the caller's registers before the compiler can move them, and goes
// on to the slow function.
#define HPD_ENTRY(name, target, stack_register, bp_register, allocator_register, number) \
  asm(".pushsection .text\n.hidden " #name "\n.globl " #name "\n.type " #name            \
      ", @function\n" #name                                                              \
      ":\n"                                                                              \
      "mov %rsp, %" #stack_register                                                      \
      "\n"                                                                               \
      "mov %rbp, %" #bp_register                                                         \
      "\n"                                                                               \
      "mov $" #number ", %" #allocator_register                                          \
      "\n"                                                                               \
      "jmp " #target                                                                     \
      "\n"                                                                               \
      ".size " #name ", .-" #name "\n.popsection\n")

// As HPD_ENTRY, and jumps to the operator itself when the slow function returns nullptr.
#define HPD_NEW_ENTRY(name, target, offset, number)                           \
  asm(".pushsection .text\n.hidden " #name "\n.globl " #name "\n.type " #name \
      ", @function\n" #name                                                   \
      ":\n"                                                                   \
      "mov %rsp, %rcx\n"                                                      \
      "mov %rbp, %r8\n"                                                       \
      "mov $" #number                                                         \
      ", %r9d\n"                                                              \
      "push %rdi\npush %rsi\nsub $8, %rsp\n"                                  \
      "call " #target                                                         \
      "\n"                                                                    \
      "add $8, %rsp\npop %rsi\npop %rdi\n"                                    \
      "test %rax, %rax\njz 1f\nret\n"                                         \
      "1: jmp *" #offset                                                      \
      "+hpd_attach_state(%rip)\n"                                             \
      ".size " #name ", .-" #name "\n.popsection\n")

#define HPD_FREE_HOOK(name, number)                                              \
  HPD_HIDDEN void HpdHook_##name##_##number(void* pointer, size_t a, size_t b) { \
    auto* real = Original<FreeFunction>(number, Hook::k##name);                  \
    if (HPD_UNLIKELY(IsSampled(pointer)))                                        \
      return FreeSampled(pointer, a, b, real);                                   \
    real(pointer, a, b);                                                         \
  }

// Offsets of originals[allocator][hook] in AttachState, as the assembler needs them.
#define HPD_ORIGINAL(number, hook)               \
  (offsetof(heapprofd::AttachState, originals) + \
   8 * (number * heapprofd::kHookCount + static_cast<size_t>(Hook::hook)))
static_assert(offsetof(heapprofd::AttachState, originals) == 320);
static_assert(heapprofd::kHookCount == 40);
static_assert(HPD_ORIGINAL(0, kNew) == 320 + 8 * 13);
static_assert(HPD_ORIGINAL(0, kNewArray) == 320 + 8 * 14);
static_assert(HPD_ORIGINAL(0, kNewAligned) == 320 + 8 * 17);
static_assert(HPD_ORIGINAL(0, kNewArrayAligned) == 320 + 8 * 18);

// What the last samples say must be looked up while the process is there.
#define HPD_EXIT_HOOK(number)                       \
  HPD_HIDDEN void HpdHook_Exit_##number(int code) { \
    if (hpd_attach_state.request.may_wait != 0)     \
      heapprofd::WaitUntilDrained();                \
    Original<void(int)>(number, Hook::kExit)(code); \
  }

// All hooks of one allocator.
#define HPD_ALLOCATOR(number)                                                            \
  HPD_ENTRY(HpdMallocEntry_##number, HpdMallocSlow, rsi, rdx, ecx, number);              \
  HPD_ENTRY(HpdHook_Valloc_##number, HpdVallocSlow, rsi, rdx, ecx, number);              \
  HPD_ENTRY(HpdHook_Pvalloc_##number, HpdPvallocSlow, rsi, rdx, ecx, number);            \
  HPD_ENTRY(HpdHook_Dlclose_##number, HpdDlcloseSlow, rsi, rdx, ecx, number);            \
  HPD_ENTRY(HpdHook_Mallocx_##number, HpdMallocxSlow, rdx, rcx, r8d, number);            \
  HPD_ENTRY(HpdHook_Rallocx_##number, HpdRallocxSlow, rcx, r8, r9d, number);             \
  HPD_ENTRY(HpdHook_Calloc_##number, HpdCallocSlow, rdx, rcx, r8d, number);              \
  HPD_ENTRY(HpdHook_Realloc_##number, HpdReallocSlow, rdx, rcx, r8d, number);            \
  HPD_ENTRY(HpdHook_Memalign_##number, HpdMemalignSlow, rdx, rcx, r8d, number);          \
  HPD_ENTRY(HpdHook_AlignedAlloc_##number, HpdAlignedAllocSlow, rdx, rcx, r8d, number);  \
  HPD_ENTRY(HpdHook_Reallocarray_##number, HpdReallocarraySlow, rcx, r8, r9d, number);   \
  HPD_ENTRY(HpdHook_PosixMemalign_##number, HpdPosixMemalignSlow, rcx, r8, r9d, number); \
  HPD_ENTRY(HpdHook_NewNothrow_##number, HpdNewNothrowSlow, rcx, r8, r9d, number);       \
  HPD_ENTRY(HpdHook_NewArrayNothrow_##number, HpdNewArrayNothrowSlow, rcx, r8, r9d,      \
            number);                                                                     \
  HPD_ENTRY(HpdHook_NewAlignedNothrow_##number, HpdNewAlignedNothrowSlow, rcx, r8, r9d,  \
            number);                                                                     \
  HPD_ENTRY(HpdHook_NewArrayAlignedNothrow_##number, HpdNewArrayAlignedNothrowSlow, rcx, \
            r8, r9d, number);                                                            \
  HPD_NEW_ENTRY(HpdHook_New_##number, HpdNewSlow, 320 + 8 * (40 * number + 13), number); \
  HPD_NEW_ENTRY(HpdHook_NewArray_##number, HpdNewArraySlow,                              \
                320 + 8 * (40 * number + 14), number);                                   \
  HPD_NEW_ENTRY(HpdHook_NewAligned_##number, HpdNewAlignedSlow,                          \
                320 + 8 * (40 * number + 17), number);                                   \
  HPD_NEW_ENTRY(HpdHook_NewArrayAligned_##number, HpdNewArrayAlignedSlow,                \
                320 + 8 * (40 * number + 18), number);                                   \
  extern "C" {                                                                           \
  void* HpdMallocEntry_##number(size_t size) __attribute__((visibility("hidden")));      \
  HPD_HIDDEN void* HpdHook_Malloc_##number(size_t size) {                                \
    if (HPD_LIKELY(PassUnsampled(size)))                                                 \
      return Original<void*(size_t)>(number, Hook::kMalloc)(size);                       \
    return HpdMallocEntry_##number(size);                                                \
  }                                                                                      \
  HPD_FREE_HOOK(Free, number)                                                            \
  HPD_FREE_HOOK(Dallocx, number)                                                         \
  HPD_FREE_HOOK(Sdallocx, number)                                                        \
  HPD_FREE_HOOK(Sallocx, number)                                                         \
  HPD_FREE_HOOK(FreeSized, number)                                                       \
  HPD_FREE_HOOK(FreeAlignedSized, number)                                                \
  HPD_FREE_HOOK(Delete, number)                                                          \
  HPD_FREE_HOOK(DeleteArray, number)                                                     \
  HPD_FREE_HOOK(DeleteSized, number)                                                     \
  HPD_FREE_HOOK(DeleteArraySized, number)                                                \
  HPD_FREE_HOOK(DeleteNothrow, number)                                                   \
  HPD_FREE_HOOK(DeleteArrayNothrow, number)                                              \
  HPD_FREE_HOOK(DeleteAligned, number)                                                   \
  HPD_FREE_HOOK(DeleteArrayAligned, number)                                              \
  HPD_FREE_HOOK(DeleteSizedAligned, number)                                              \
  HPD_FREE_HOOK(DeleteArraySizedAligned, number)                                         \
  HPD_FREE_HOOK(DeleteAlignedNothrow, number)                                            \
  HPD_FREE_HOOK(DeleteArrayAlignedNothrow, number)                                       \
  HPD_EXIT_HOOK(number)                                                                  \
  }

HPD_ALLOCATOR(0)
HPD_ALLOCATOR(1)
HPD_ALLOCATOR(2)
HPD_ALLOCATOR(3)
static_assert(heapprofd::kMaxAllocators == 4);
// NOLINTEND(readability-function-size,bugprone-macro-parentheses)

// The header, at the image's start (attach_image.lds). Differences of addresses, so that
// nothing in the image depends on where it lies.
#define HPD_OFFSET_OF_HOOK(name, symbol) \
  ".long HpdHook_" #name "_\\number - HpdImageStart\n"
asm(".pushsection .image_header, \"a\"\n"
    "HpdImageStart:\n"
    ".quad 0x3231686361747461\n"  // kAttachMagic
    ".long HpdCodeEnd - HpdImageStart\n"
    ".long HpdGates - HpdImageStart\n"
    ".long HpdContentsEnd - HpdImageStart\n"
    ".long HpdImageEnd - HpdImageStart\n"
    ".long hpd_attach_state - HpdImageStart\n"
    ".long HpdSetupEntry - HpdImageStart\n"
    ".long HpdSetupEnd - HpdImageStart\n"
    ".long _ZN9heapprofd7g_wipedE - HpdImageStart\n"
    ".long hpd_setup_stack - HpdImageStart\n"
    ".long hpd_setup_stack + 65536 - HpdImageStart\n"
    ".long 0\n"
    ".irp number, 0, 1, 2, 3\n" HPD_HOOK_LIST(HPD_OFFSET_OF_HOOK) ".endr\n"
    ".popsection\n");
static_assert(heapprofd::kAttachMagic == 0x3231686361747461);
static_assert(heapprofd::kSetupStackSize == 65536);
static_assert(offsetof(heapprofd::AttachHeader, hooks) == 52);
static_assert(offsetof(heapprofd::WipedOnFork, active) == 0);
