// The end of the client's block (wire/shared_memory.h), as a client maps it: only when
// there is something for it, for most programs have neither heaps of their own nor labels.
#pragma once

#include <cstddef>

#include "wire/heaps.h"
#include "wire/shared_memory.h"

namespace heapprofd {

// What a ClientBlock holds from its heap slots to its end.
struct alignas(kPageSize) ClientTables {
  ThreadSlot heap_slots[kMaxHeapSlots];
  HeapEntry heaps[kMaxHeaps];
  alignas(kPageSize) LabelEntry labels[kMaxLabels];
};

inline constexpr size_t kTablesOffset = offsetof(ClientBlock, heap_slots);
static_assert(kTablesOffset % kPageSize == 0);
static_assert(kTablesOffset + offsetof(ClientTables, heaps) ==
              offsetof(ClientBlock, heaps));
static_assert(kTablesOffset + offsetof(ClientTables, labels) ==
              offsetof(ClientBlock, labels));
static_assert(kTablesOffset + sizeof(ClientTables) == sizeof(ClientBlock));

// What a client maps of its block in any case: all but the tables, and of these the first
// page, of which it can make a mapping of all of them without a descriptor.
inline constexpr size_t kClientMapped = kTablesOffset + kPageSize;

}  // namespace heapprofd
