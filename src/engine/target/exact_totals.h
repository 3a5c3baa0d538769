// Counters that the target writes: cut to what no honest program reaches, so that sums
// over many of them stay exact in a double and fit 64 bits.
#pragma once

#include <cstdint>

#include "profile/model.h"
#include "wire/shared_memory.h"

namespace heapprofd {

uint64_t BoundedCounter(uint64_t counter);

// Adds the allocations that the slot has counted to the exact totals of `dump`.
void AddExactTotals(const ThreadSlot& slot, HeapDump* dump);

}  // namespace heapprofd
