// What the attached client keeps per thread. A flat image has no thread-local storage, so
// this is a table searched by the thread pointer; the entry of a thread is nearly always
// where its hash says.
//
// An entry outlives its thread. The next thread with the same control block inherits it,
// which is harmless for the same reasons as with a ThreadSlot.
#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>

#include "rt/compiler.h"
#include "rt/syscall.h"
#include "wire/shared_memory.h"

namespace heapprofd {

struct alignas(64) FlatThread {
  std::atomic<uint64_t> thread_pointer;  // 0: free
  ThreadSlot* slot;      // of the fast path; one without bytes left inside an outer hook
  ThreadSlot* own_slot;  // to put back when the outer hook ends
  uint64_t outer_hook;   // stack pointer of the hook under way, 0: none
  uint64_t entered_at;   // stack pointer at which the recorder was entered, 0: it was not
  uint64_t waited_ns;    // for space, by the first record of a realloc
};

inline constexpr unsigned kFlatThreadBits = 12;

extern FlatThread g_flat_threads[1u << kFlatThreadBits];

// Slow path of ThisThread. With a full table an entry that records nothing.
FlatThread& FindFlatThread(uint64_t thread_pointer);

inline uint64_t FlatThreadIndex(uint64_t thread_pointer) {
  return (thread_pointer >> 6) * 0x9e3779b97f4a7c15u >> (64 - kFlatThreadBits);
}

inline FlatThread& ThisThread() {
  const uint64_t thread_pointer = rt::ThreadPointer();
  FlatThread& thread = g_flat_threads[FlatThreadIndex(thread_pointer)];
  if (HPD_LIKELY(thread.thread_pointer.load(std::memory_order_relaxed) == thread_pointer))
    return thread;
  return FindFlatThread(thread_pointer);
}

// Stands where the preload library has a thread_local variable.
template <typename T, T FlatThread::*kField>
struct FlatThreadVariable {
  // NOLINTNEXTLINE(google-explicit-constructor)
  operator T() const { return ThisThread().*kField; }

  T operator->() const requires std::is_pointer_v<T> { return ThisThread().*kField; }

  const FlatThreadVariable& operator=(T value) const {
    ThisThread().*kField = value;
    return *this;
  }
};

}  // namespace heapprofd
