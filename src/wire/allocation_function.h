// The function that a program called for a sampled allocation: a record carries its
// number, the engine makes it the innermost frame of the stack.
#pragma once

#include <cstdint>

namespace heapprofd {

// X(name, symbol, for people). Numbers cross to engines of other versions: only append.
#define HPD_ALLOCATION_FUNCTION_LIST(X)                                                  \
  X(Malloc, "malloc", "malloc")                                                          \
  X(Calloc, "calloc", "calloc")                                                          \
  X(Realloc, "realloc", "realloc")                                                       \
  X(Reallocarray, "reallocarray", "reallocarray")                                        \
  X(Memalign, "memalign", "memalign")                                                    \
  X(AlignedAlloc, "aligned_alloc", "aligned_alloc")                                      \
  X(PosixMemalign, "posix_memalign", "posix_memalign")                                   \
  X(Valloc, "valloc", "valloc")                                                          \
  X(Pvalloc, "pvalloc", "pvalloc")                                                       \
  X(Mallocx, "mallocx", "mallocx")                                                       \
  X(Rallocx, "rallocx", "rallocx")                                                       \
  X(Xallocx, "xallocx", "xallocx")                                                       \
  X(New, "_Znwm", "operator new(unsigned long)")                                         \
  X(NewArray, "_Znam", "operator new[](unsigned long)")                                  \
  X(NewNothrow, "_ZnwmRKSt9nothrow_t",                                                   \
    "operator new(unsigned long, std::nothrow_t const&)")                                \
  X(NewArrayNothrow, "_ZnamRKSt9nothrow_t",                                              \
    "operator new[](unsigned long, std::nothrow_t const&)")                              \
  X(NewAligned, "_ZnwmSt11align_val_t", "operator new(unsigned long, std::align_val_t)") \
  X(NewArrayAligned, "_ZnamSt11align_val_t",                                             \
    "operator new[](unsigned long, std::align_val_t)")                                   \
  X(NewAlignedNothrow, "_ZnwmSt11align_val_tRKSt9nothrow_t",                             \
    "operator new(unsigned long, std::align_val_t, std::nothrow_t const&)")              \
  X(NewArrayAlignedNothrow, "_ZnamSt11align_val_tRKSt9nothrow_t",                        \
    "operator new[](unsigned long, std::align_val_t, std::nothrow_t const&)")            \
  X(ReportAllocation, "AHeapProfile_reportAllocation", "AHeapProfile_reportAllocation")  \
  X(ReportSample, "AHeapProfile_reportSample", "AHeapProfile_reportSample")

enum class AllocationFunction : uint8_t {
  kUnknown = 0,  // of a client that does not tell
#define HPD_ALLOCATION_FUNCTION(name, symbol, text) k##name,
  HPD_ALLOCATION_FUNCTION_LIST(HPD_ALLOCATION_FUNCTION)
#undef HPD_ALLOCATION_FUNCTION
      kCount,
};

}  // namespace heapprofd
