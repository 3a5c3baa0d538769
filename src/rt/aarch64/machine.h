// aarch64: what code inside the target asks of the processor and of the C library's
// layout.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>

namespace heapprofd::rt {

// Of ELF files for it, and how it is called.
inline constexpr unsigned kElfMachine = EM_AARCH64;
inline constexpr const char* kName = "aarch64";

// Sizes that the kernel's pages may have, in bytes: 4, 16 or 64 KiB, as it was built.
inline constexpr size_t kSmallestPage = 4096;
// Programs of this architecture may run in an emulator, a program of another one.
inline constexpr bool kMayBeEmulated = true;
inline constexpr size_t kLargestPage = 65536;

// Returns what the kernel returns: a value, or -errno in [-4095, -1].
// NOLINTNEXTLINE(readability-function-size): as many as the kernel takes
inline long Syscall(
    long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  register long x5 asm("x5") = f;
  asm volatile("svc #0"
               : "+r"(x0)
               : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
               : "memory");
  return x0;
}

// The virtual counter, which all processors share; the engine converts it
// (engine/tsc_clock.h).
inline uint64_t ReadTsc() {
  uint64_t ticks = 0;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
}

// Also under strict seccomp.
inline constexpr bool kMayTscBeForbidden = false;

inline constexpr uint64_t kNanosecondsPerSecond = 1'000'000'000;

// Hz; the board's: 24 MHz to 1 GHz.
inline uint64_t TickFrequency() {
  uint64_t frequency = 0;
  asm("mrs %0, cntfrq_el0" : "=r"(frequency));
  return frequency;
}

// value * times / of, where the rest times `times` fits into 64 bits.
inline uint64_t Scale(uint64_t value, uint64_t times, uint64_t of) {
  return value / of * times + value % of * times / of;
}

inline uint64_t TicksOf(uint64_t nanoseconds) {
  return Scale(nanoseconds, TickFrequency(), kNanosecondsPerSecond);
}

inline uint64_t NanosecondsOf(uint64_t ticks) {
  return Scale(ticks, kNanosecondsPerSecond, TickFrequency());
}

// In a loop that waits for another thread.
inline void Pause() {
  asm volatile("yield");
}

// Unique per thread, the same for a thread's whole life.
inline uint64_t ThreadPointer() {
  uint64_t pointer = 0;
  asm("mrs %0, tpidr_el0" : "=r"(pointer));
  return pointer;
}

// Where the C library keeps its description of a thread, which has that many bytes: below
// the thread pointer, thread-local variables are above it.
inline uint64_t ControlBlock(uint64_t thread_pointer, uint64_t size) {
  return thread_pointer - size;
}

inline void CopyBytes(void* to, const void* from, size_t size) {
  struct [[gnu::packed, gnu::may_alias]] Pair {
    uint64_t low;
    uint64_t high;
  };

  auto* target = static_cast<char*>(to);
  const auto* source = static_cast<const char*>(from);
  for (; size >= sizeof(Pair); size -= sizeof(Pair)) {
    *reinterpret_cast<Pair*>(target) = *reinterpret_cast<const Pair*>(source);
    target += sizeof(Pair);
    source += sizeof(Pair);
  }
  for (; size > 0; --size)
    *target++ = *source++;
}

inline void FillBytes(void* to, int value, size_t size) {
  auto* target = static_cast<char*>(to);
  for (; size > 0; --size)
    *target++ = static_cast<char>(value);
}

}  // namespace heapprofd::rt
