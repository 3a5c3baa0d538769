// System calls without libc: they neither touch errno nor can they be interposed. Used by
// the client's slow paths only (start, fork, exit, waiting for ring space); never by a
// hook that just passes through.
#pragma once

#include <sys/syscall.h>

#include <cstdint>

#include "rt/machine.h"

namespace heapprofd::rt {

inline bool IsError(long result) {
  return result < 0 && result >= -4095;
}

template <typename T>
inline long ToArg(T* pointer) {
  return static_cast<long>(reinterpret_cast<uintptr_t>(pointer));
}

}  // namespace heapprofd::rt
