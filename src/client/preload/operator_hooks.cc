// operator new and delete, interposed by LD_PRELOAD, for allocators that define them
// themselves and in the place of libstdc++'s (docs/design/operators.md).
#include <cstddef>
#include <cstdint>

#include "client/hook_path.h"
#include "client/preload/real_functions.h"
#include "client/slow_entry.h"
#include "rt/compiler.h"

using heapprofd::Allocate;
using heapprofd::AllocationFunction;
using heapprofd::EnsureResolved;
using heapprofd::g_real;
using heapprofd::IsSampled;
using heapprofd::PassUnsampled;
using heapprofd::ReportFree;
using heapprofd::t_outer_hook;

// operator new gave up: its exception is on the way to the program. Called by the C++
// runtime for the frame of HPD_THROWING_ENTRY, first when it looks for a handler, then
// when it removes the frame (Itanium C++ ABI, exception handling, 1.6).
extern "C" {

__attribute__((visibility("hidden"), used)) int HpdLeaveByException(
    int, int actions, uint64_t, void*, void*) {
  constexpr int kCleanupPhase = 2;
  constexpr int kContinueUnwind = 8;
  if ((actions & kCleanupPhase) != 0 && t_outer_hook.stack != 0)
    t_outer_hook.TakeBack();
  return kContinueUnwind;
}

#define HPD_NEW(field, name, function, may_nest)                                \
  __attribute__((visibility("hidden"), used)) void* HpdSlow_##field(            \
      size_t size, size_t a, size_t b, uint64_t stack, uint64_t bp) {           \
    return Allocate(size, {stack, bp, AllocationFunction::function},            \
                    [&] { return g_real.field(size, a, b); });                  \
  }                                                                             \
  HPD_THROWING_ENTRY(HpdEntry_##field, HpdSlow_##field, HpdLeaveByException);   \
  void* HpdEntry_##field(size_t size, size_t a, size_t b);                      \
  HPD_EXPORT void* name(size_t size, size_t a, size_t b) {                      \
    EnsureResolved();                                                           \
    if (HPD_LIKELY(!g_real.record_new || (!(may_nest) && PassUnsampled(size)))) \
      return g_real.field(size, a, b);                                          \
    return HpdEntry_##field(size, a, b);                                        \
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
