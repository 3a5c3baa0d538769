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
// - No system call is made: the process may have put itself under a seccomp filter, which
//   might end it for one. Whoever waits for the engine spins.
#include <cstddef>
#include <cstdint>

#include "client/image/attach_guard.h"
#include "client/image/hook_entry.h"

using heapprofd::FlatThread;
using heapprofd::g_wiped;
using heapprofd::Hook;
using heapprofd::IsSampled;
using heapprofd::Original;
using heapprofd::ThreadSlot;

namespace {

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

// Pointer and size arguments of all functions that free fit three registers.
using FreeFunction = void(void*, size_t, size_t);

HPD_NOINLINE void FreeSampled(void* pointer, size_t a, size_t b, FreeFunction* real) {
  const auto address = reinterpret_cast<uint64_t>(pointer);
  if (g_wiped.filter.Remove(address))
    heapprofd::RecordFree({address}, /*is_realloc=*/false);
  real(pointer, a, b);
}

}  // namespace

// Macro arguments that are pasted. NOLINTBEGIN(bugprone-macro-parentheses)

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
static_assert(offsetof(heapprofd::AttachState, originals) == HPD_ORIGINALS_AT);
static_assert(heapprofd::kHookCount == 40);
static_assert(HPD_ORIGINAL(0, kNew) == HPD_ORIGINALS_AT + 8 * 13);
static_assert(HPD_ORIGINAL(0, kNewArray) == HPD_ORIGINALS_AT + 8 * 14);
static_assert(HPD_ORIGINAL(0, kNewAligned) == HPD_ORIGINALS_AT + 8 * 17);
static_assert(HPD_ORIGINAL(0, kNewArrayAligned) == HPD_ORIGINALS_AT + 8 * 18);

// What the last samples say must be looked up while the process is there.
#define HPD_EXIT_HOOK(number)                       \
  HPD_HIDDEN void HpdHook_Exit_##number(int code) { \
    heapprofd::WaitUntilDrained();                  \
    Original<void(int)>(number, Hook::kExit)(code); \
  }

// All hooks of one allocator.
#define HPD_ALLOCATOR(number)                                                          \
  HPD_ENTRY_1(HpdMallocEntry_##number, HpdMallocSlow, number);                         \
  HPD_ENTRY_1(HpdHook_Valloc_##number, HpdVallocSlow, number);                         \
  HPD_ENTRY_1(HpdHook_Pvalloc_##number, HpdPvallocSlow, number);                       \
  HPD_ENTRY_1(HpdHook_Dlclose_##number, HpdDlcloseSlow, number);                       \
  HPD_ENTRY_2(HpdHook_Mallocx_##number, HpdMallocxSlow, number);                       \
  HPD_ENTRY_2(HpdHook_Calloc_##number, HpdCallocSlow, number);                         \
  HPD_ENTRY_2(HpdHook_Realloc_##number, HpdReallocSlow, number);                       \
  HPD_ENTRY_2(HpdHook_Memalign_##number, HpdMemalignSlow, number);                     \
  HPD_ENTRY_2(HpdHook_AlignedAlloc_##number, HpdAlignedAllocSlow, number);             \
  HPD_ENTRY_3(HpdHook_Rallocx_##number, HpdRallocxSlow, number);                       \
  HPD_ENTRY_3(HpdHook_Reallocarray_##number, HpdReallocarraySlow, number);             \
  HPD_ENTRY_3(HpdHook_PosixMemalign_##number, HpdPosixMemalignSlow, number);           \
  HPD_ENTRY_3(HpdHook_NewNothrow_##number, HpdNewNothrowSlow, number);                 \
  HPD_ENTRY_3(HpdHook_NewArrayNothrow_##number, HpdNewArrayNothrowSlow, number);       \
  HPD_ENTRY_3(HpdHook_NewAlignedNothrow_##number, HpdNewAlignedNothrowSlow, number);   \
  HPD_ENTRY_3(HpdHook_NewArrayAlignedNothrow_##number, HpdNewArrayAlignedNothrowSlow,  \
              number);                                                                 \
  HPD_NEW_ENTRY(HpdHook_New_##number, HpdNewSlow, 13, number);                         \
  HPD_NEW_ENTRY(HpdHook_NewArray_##number, HpdNewArraySlow, 14, number);               \
  HPD_NEW_ENTRY(HpdHook_NewAligned_##number, HpdNewAlignedSlow, 17, number);           \
  HPD_NEW_ENTRY(HpdHook_NewArrayAligned_##number, HpdNewArrayAlignedSlow, 18, number); \
  extern "C" {                                                                         \
  void* HpdMallocEntry_##number(size_t size) __attribute__((visibility("hidden")));    \
  HPD_HIDDEN void* HpdHook_Malloc_##number(size_t size) {                              \
    if (HPD_LIKELY(PassUnsampled(size)))                                               \
      return Original<void*(size_t)>(number, Hook::kMalloc)(size);                     \
    return HpdMallocEntry_##number(size);                                              \
  }                                                                                    \
  HPD_FREE_HOOK(Free, number)                                                          \
  HPD_FREE_HOOK(Dallocx, number)                                                       \
  HPD_FREE_HOOK(Sdallocx, number)                                                      \
  HPD_FREE_HOOK(Sallocx, number)                                                       \
  HPD_FREE_HOOK(FreeSized, number)                                                     \
  HPD_FREE_HOOK(FreeAlignedSized, number)                                              \
  HPD_FREE_HOOK(Delete, number)                                                        \
  HPD_FREE_HOOK(DeleteArray, number)                                                   \
  HPD_FREE_HOOK(DeleteSized, number)                                                   \
  HPD_FREE_HOOK(DeleteArraySized, number)                                              \
  HPD_FREE_HOOK(DeleteNothrow, number)                                                 \
  HPD_FREE_HOOK(DeleteArrayNothrow, number)                                            \
  HPD_FREE_HOOK(DeleteAligned, number)                                                 \
  HPD_FREE_HOOK(DeleteArrayAligned, number)                                            \
  HPD_FREE_HOOK(DeleteSizedAligned, number)                                            \
  HPD_FREE_HOOK(DeleteArraySizedAligned, number)                                       \
  HPD_FREE_HOOK(DeleteAlignedNothrow, number)                                          \
  HPD_FREE_HOOK(DeleteArrayAlignedNothrow, number)                                     \
  HPD_EXIT_HOOK(number)                                                                \
  }

HPD_ALLOCATOR(0)
HPD_ALLOCATOR(1)
HPD_ALLOCATOR(2)
HPD_ALLOCATOR(3)
static_assert(heapprofd::kMaxAllocators == 4);
// NOLINTEND(bugprone-macro-parentheses)

// The header, at the image's start (attach_image.lds). Differences of addresses, so that
// nothing in the image depends on where it lies.
#define HPD_OFFSET_OF_HOOK(name, symbol) \
  ".long HpdHook_" #name "_\\number - HpdImageStart\n"
asm(".pushsection .image_header, \"a\"\n"
    "HpdImageStart:\n"
    ".quad 0x3731686361747461\n"  // kAttachMagic
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
    ".irp number, 0, 1, 2, 3\n" HPD_HOOK_LIST(HPD_OFFSET_OF_HOOK) ".endr\n"
    ".popsection\n");
static_assert(heapprofd::kAttachMagic == 0x3731686361747461);
static_assert(heapprofd::kSetupStackSize == 65536);
static_assert(offsetof(heapprofd::AttachHeader, hooks) == 48);
static_assert(offsetof(heapprofd::WipedOnFork, active) == 0);
static_assert(offsetof(heapprofd::WipedOnFork, own_files) == heapprofd::kOwnFilesOffset);
