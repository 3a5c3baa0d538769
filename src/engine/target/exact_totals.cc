#include "engine/target/exact_totals.h"

#include <algorithm>

namespace heapprofd {

uint64_t BoundedCounter(uint64_t counter) {
  return std::min(counter, uint64_t{1} << 53);
}

void AddExactTotals(const ThreadSlot& slot, HeapDump* dump) {
  const uint64_t calls = __atomic_load_n(&slot.calls, __ATOMIC_RELAXED);
  const uint64_t granted = __atomic_load_n(&slot.granted, __ATOMIC_RELAXED);
  const uint64_t left = __atomic_load_n(&slot.bytes_left, __ATOMIC_RELAXED);
  // The thread may be between its two writes, or lie.
  const uint64_t bytes = granted > left ? granted - left : 0;
  dump->exact_alloc_calls =
      BoundedCounter(dump->exact_alloc_calls + BoundedCounter(calls));
  dump->exact_alloc_bytes =
      BoundedCounter(dump->exact_alloc_bytes + BoundedCounter(bytes));
}

}  // namespace heapprofd
