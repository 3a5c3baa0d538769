// System calls without libc: they neither touch errno nor can they be interposed. Used by
// the client's slow paths only (start, fork, exit, waiting for ring space); never by a
// hook that just passes through.
#pragma once

#include <sys/syscall.h>

#include <cstdint>

namespace heapprofd::rt {

// Returns what the kernel returns: a value, or -errno in [-4095, -1].
// NOLINTNEXTLINE(readability-function-size): as many as the kernel takes
inline long Syscall(
    long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
  long result = 0;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}

inline bool IsError(long result) {
  return result < 0 && result >= -4095;
}

template <typename T>
inline long ToArg(T* pointer) {
  return static_cast<long>(reinterpret_cast<uintptr_t>(pointer));
}

// Cycles of the time stamp counter; the engine converts them (wire/clock.h).
inline uint64_t ReadTsc() {
  return __builtin_ia32_rdtsc();
}

// Address of the calling thread's control block: unique per thread, the same for a
// thread's whole life.
inline uint64_t ThreadPointer() {
  uint64_t pointer = 0;
  asm("mov %%fs:0, %0" : "=r"(pointer));
  return pointer;
}

}  // namespace heapprofd::rt
