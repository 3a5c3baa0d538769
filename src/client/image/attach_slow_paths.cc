// Where hooks of the attached client go when they are not done in a few instructions: one
// function for each kind of call, whichever allocator it goes to.
#include "client/image/attach_guard.h"
#include "client/image/hook_entry.h"

using heapprofd::Allocate;
using heapprofd::AllocationFunction;
using heapprofd::CallSite;
using heapprofd::g_wiped;
using heapprofd::GuardedAllocation;
using heapprofd::Hook;
using heapprofd::IsSampled;
using heapprofd::Original;
using heapprofd::Reallocate;

namespace {

using NewFunction = void*(size_t, size_t, size_t);

const char g_nothrow = 0;  // std::nothrow of the operators: only its address is passed

}  // namespace

extern "C" {

// As many parameters as an entry has registers to hand on; macro arguments that are
// pasted. NOLINTBEGIN(readability-function-size,bugprone-macro-parentheses)

// `stack` is the address of the return address in the hook's caller, `bp` its
// rbp, `allocator` says whose function it is.
HPD_HIDDEN void* HpdMallocSlow(size_t size,
                               uint64_t stack,
                               uint64_t bp,
                               unsigned allocator) {
  return Allocate(size, {stack, bp, AllocationFunction::kMalloc}, [&] {
    return Original<void*(size_t)>(allocator, Hook::kMalloc)(size);
  });
}

HPD_HIDDEN void* HpdVallocSlow(size_t size,
                               uint64_t stack,
                               uint64_t bp,
                               unsigned allocator) {
  return Allocate(size, {stack, bp, AllocationFunction::kValloc}, [&] {
    return Original<void*(size_t)>(allocator, Hook::kValloc)(size);
  });
}

HPD_HIDDEN void* HpdPvallocSlow(size_t size,
                                uint64_t stack,
                                uint64_t bp,
                                unsigned allocator) {
  return Allocate(size, {stack, bp, AllocationFunction::kPvalloc}, [&] {
    return Original<void*(size_t)>(allocator, Hook::kPvalloc)(size);
  });
}

HPD_HIDDEN void* HpdCallocSlow(
    size_t count, size_t size, uint64_t stack, uint64_t bp, unsigned allocator) {
  auto* real = Original<void*(size_t, size_t)>(allocator, Hook::kCalloc);
  size_t total = 0;
  if (__builtin_mul_overflow(count, size, &total))
    return real(count, size);  // fails, with the allocator's own errno
  return Allocate(total, {stack, bp, AllocationFunction::kCalloc},
                  [&] { return real(count, size); });
}

HPD_HIDDEN void* HpdReallocSlow(
    void* old, size_t size, uint64_t stack, uint64_t bp, unsigned allocator) {
  return Reallocate(old, size, {stack, bp, AllocationFunction::kRealloc}, [&] {
    return Original<void*(void*, size_t)>(allocator, Hook::kRealloc)(old, size);
  });
}

// A libc's own calls whatever realloc the program has: another allocator's, maybe.
HPD_HIDDEN void* HpdReallocarraySlow(void* old,
                                     size_t count,
                                     size_t size,
                                     uint64_t stack,
                                     uint64_t bp,
                                     unsigned allocator) {
  auto* real = Original<void*(void*, size_t, size_t)>(allocator, Hook::kReallocarray);
  size_t total = 0;
  if (__builtin_mul_overflow(count, size, &total))
    return real(old, count, size);  // fails, with the allocator's own errno
  return Reallocate(old, total, {stack, bp, AllocationFunction::kReallocarray},
                    [&] { return real(old, count, size); });
}

HPD_HIDDEN void* HpdMemalignSlow(
    size_t alignment, size_t size, uint64_t stack, uint64_t bp, unsigned allocator) {
  return Allocate(size, {stack, bp, AllocationFunction::kMemalign}, [&] {
    return Original<void*(size_t, size_t)>(allocator, Hook::kMemalign)(alignment, size);
  });
}

HPD_HIDDEN void* HpdAlignedAllocSlow(
    size_t alignment, size_t size, uint64_t stack, uint64_t bp, unsigned allocator) {
  return Allocate(size, {stack, bp, AllocationFunction::kAlignedAlloc}, [&] {
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
  Allocate(size, {stack, bp, AllocationFunction::kPosixMemalign}, [&]() -> void* {
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
    const CallSite site{stack, bp, AllocationFunction::kNew##name};                      \
    GuardedAllocation allocation(size, site);                                            \
    if (!allocation.is_counted())                                                        \
      return nullptr;                                                                    \
    void* pointer = real(__VA_ARGS__);                                                   \
    allocation.Finish(pointer, site);                                                    \
    return pointer;                                                                      \
  }
HPD_NEW_SLOW(, NewNothrow, size, nothrow, 0)
HPD_NEW_SLOW(Array, NewArrayNothrow, size, nothrow, 0)
HPD_NEW_SLOW(Aligned, NewAlignedNothrow, size, alignment, nothrow)
HPD_NEW_SLOW(ArrayAligned, NewArrayAlignedNothrow, size, alignment, nothrow)

#define HPD_NEW_NOTHROW_SLOW(name)                                                  \
  HPD_HIDDEN void* Hpd##name##Slow(size_t size, size_t a, size_t b, uint64_t stack, \
                                   uint64_t bp, unsigned allocator) {               \
    return Allocate(size, {stack, bp, AllocationFunction::k##name}, [&] {           \
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
  return Allocate(size, {stack, bp, AllocationFunction::kMallocx}, [&] {
    return Original<void*(size_t, int)>(allocator, Hook::kMallocx)(size, flags);
  });
}

HPD_HIDDEN void* HpdRallocxSlow(
    void* old, size_t size, int flags, uint64_t stack, uint64_t bp, unsigned allocator) {
  return Reallocate(old, size, {stack, bp, AllocationFunction::kRallocx}, [&] {
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
      const CallSite site{stack, bp, AllocationFunction::kXallocx};                   \
      GuardedAllocation allocation(size, site);                                       \
      const auto address = reinterpret_cast<uint64_t>(block);                         \
      if (IsSampled(block) && g_wiped.filter.Remove(address))                         \
        heapprofd::RecordFree({address}, /*is_realloc=*/false);                       \
      allocation.Finish(block, site);                                                 \
    }                                                                                 \
    return now;                                                                       \
  }                                                                                   \
  HPD_ENTRY_4(HpdHook_Xallocx_##number, HpdXallocxSlow_##number)
HPD_XALLOCX_SLOW(0);
HPD_XALLOCX_SLOW(1);
HPD_XALLOCX_SLOW(2);
HPD_XALLOCX_SLOW(3);

// Unloading makes addresses reusable by other code: the rules learnt for them must not
// outlive it.
HPD_HIDDEN int HpdDlcloseSlow(void* handle, uint64_t, uint64_t, unsigned allocator) {
  // What was sampled in this module must be looked up while it is still there.
  heapprofd::WaitUntilDrained();
  const int result = Original<int(void*)>(allocator, Hook::kDlclose)(handle);
  heapprofd::RecordModulesChanged();
  return result;
}

// NOLINTEND(readability-function-size,bugprone-macro-parentheses)
}  // extern "C"
