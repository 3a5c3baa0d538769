// Memory of the client in the program's address space. A program may have locked all that
// it maps, limit its address space, or dump it: so the client maps what it needs only when
// it needs it, and nothing of it is in the program's core dumps.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "client/confinement.h"
#include "rt/compiler.h"
#include "rt/syscall.h"

namespace heapprofd {

// Leaves whole pages out of the program's core dumps: RLIMIT_CORE counts them there, and
// would cut off the program's own. A kernel that refuses dumps them.
inline void LeaveOutOfCores(const void* start, uint64_t size) {
  rt::Syscall(SYS_madvise, rt::ToArg(start), static_cast<long>(size), MADV_DONTDUMP);
}

enum class OnFork : uint8_t { kKept, kWiped };

// Maps zeroed memory, which a forked child finds as it is or zeroed again. nullptr: there
// is none.
inline std::byte* MapOwnMemory(uint64_t size, OnFork on_fork) {
  const long mapped =
      rt::Syscall(SYS_mmap, 0, static_cast<long>(size), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (rt::IsError(mapped))
    return nullptr;
  auto* start = reinterpret_cast<std::byte*>(mapped);
  LeaveOutOfCores(start, size);
  if (on_fork == OnFork::kWiped &&
      rt::IsError(
          rt::Syscall(SYS_madvise, mapped, static_cast<long>(size), MADV_WIPEONFORK))) {
    rt::Syscall(SYS_munmap, mapped, static_cast<long>(size));
    return nullptr;
  }
  return start;
}

// Returns the memory at `place`, which is mapped if there is none yet; nullptr: it cannot
// be, or no system call may be made (confinement.h). Any thread.
template <typename T>
T* MapOnce(std::atomic<T*>& place, uint64_t size, OnFork on_fork) {
  T* there = place.load(std::memory_order_acquire);
  if (HPD_LIKELY(there != nullptr))
    return there;
  if (IsConfined())
    return nullptr;
  auto* mapped = reinterpret_cast<T*>(MapOwnMemory(size, on_fork));
  if (mapped == nullptr || place.compare_exchange_strong(there, mapped))
    return mapped;
  rt::Syscall(SYS_munmap, rt::ToArg(mapped), static_cast<long>(size));
  return there;
}

}  // namespace heapprofd
