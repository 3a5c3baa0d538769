// x86-64: what code inside the target asks of the processor and of the C library's
// layout.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>

namespace heapprofd::rt {

// Of ELF files for it, and how it is called.
inline constexpr unsigned kElfMachine = EM_X86_64;
inline constexpr const char* kName = "x86-64";

// Sizes that the kernel's pages may have, in bytes.
inline constexpr size_t kSmallestPage = 4096;
// Programs of this architecture are recorded where they run by themselves.
inline constexpr bool kMayBeEmulated = false;
inline constexpr size_t kLargestPage = 4096;

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

// The time stamp counter; the engine converts it (engine/tsc_clock.h).
inline uint64_t ReadTsc() {
  return __builtin_ia32_rdtsc();
}

// Strict seccomp ends a process that reads it (the kernel's TIF_NOTSC).
inline constexpr bool kMayTscBeForbidden = true;

// Of any processor's, about.
inline constexpr uint64_t kTicksPerNanosecond = 2;

inline uint64_t TicksOf(uint64_t nanoseconds) {
  return nanoseconds * kTicksPerNanosecond;
}

inline uint64_t NanosecondsOf(uint64_t ticks) {
  return ticks / kTicksPerNanosecond;
}

// In a loop that waits for another thread.
inline void Pause() {
  __builtin_ia32_pause();
}

// Unique per thread, the same for a thread's whole life.
inline uint64_t ThreadPointer() {
  uint64_t pointer = 0;
  asm("mov %%fs:0, %0" : "=r"(pointer));
  return pointer;
}

// Where the C library keeps its description of a thread, which has that many bytes.
inline uint64_t ControlBlock(uint64_t thread_pointer, uint64_t) {
  return thread_pointer;
}

inline void CopyBytes(void* to, const void* from, size_t size) {
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
}

inline void FillBytes(void* to, int value, size_t size) {
  asm volatile("rep stosb" : "+D"(to), "+c"(size) : "a"(value) : "memory");
}

}  // namespace heapprofd::rt
