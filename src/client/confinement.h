// System calls under a seccomp filter: one that the program's own filter does not know
// can kill it. Once the program has installed a filter, this library makes none.
//
// Seen are filters that are installed through prctl and syscall (confinement_hooks.cc),
// as libseccomp does. A forked child then cannot ask for a session of its own, nor can a
// program that is executed: they are counted and go on unprofiled. An attached client sees
// none, so that its hooks make no system call at all (tools/check_attach_image.py).
#pragma once

#include <atomic>
#include <cstdint>

#include "wire/shared_memory.h"

namespace heapprofd {

extern constinit std::atomic<uint32_t> g_is_confined;

#ifdef HPD_FLAT_CLIENT
inline constexpr bool kIsAttached = true;
#else
inline constexpr bool kIsAttached = false;
#endif

inline bool IsConfined() {
  if constexpr (kIsAttached)
    return true;  // for all that it knows
  return g_is_confined.load(std::memory_order_relaxed) != 0;
}

// Waits about this long (ns, a few milliseconds at most).
void Nap(long nanoseconds);

// This process has begun so many things that cannot be profiled, for the reason that the
// counter stands for.
void CountUnprofiled(std::atomic<uint32_t> RingHeader::*counter, int count);

}  // namespace heapprofd
