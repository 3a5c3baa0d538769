// What every object of the Java heaps of a trace holds alone.
#pragma once

#include <cstdint>

#include "base/column.h"
#include "base/status.h"
#include "query/sqlite/database.h"
#include "tables/imported_trace.h"

namespace heapprofd {

// A row per object that can be reached, in their order.
struct HeapDominators {
  Column<uint32_t> object;
  Column<uint32_t> dominator;  // an object; kNoId: a root, or held by several of them
  Column<int64_t> count;       // of objects dominated, with itself
  Column<int64_t> size;
  Column<int64_t> native_size;
  Column<uint32_t> depth;         // 1 without a dominator
  Column<bool> is_first_of_type;  // no object of its class dominates it
};

// kUnavailable when cancelled.
Result<HeapDominators> FindHeapDominators(const ImportedTrace& trace,
                                          const CancelFlag& cancelled);

}  // namespace heapprofd
