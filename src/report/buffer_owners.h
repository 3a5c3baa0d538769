// Direct buffers of Java: memory outside the heap that objects in it stand for. Who holds
// them in the heap, and which native stacks have allocated them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "query/sqlite/database.h"
#include "tables/imported_trace.h"

namespace heapprofd {

// Buffers of a process that objects of one class hold and one stack has allocated.
struct BufferGroup {
  uint32_t upid = 0;
  std::string owner = {};
  uint32_t callsite = kNoId;  // of the sampled block; kNoId: none has the address
  uint64_t buffers = 0;
  uint64_t bytes = 0;
};

// Of the last dump of each process, the largest first; owners are those of HolderWalk.
// kUnavailable when cancelled.
Result<std::vector<BufferGroup>> GroupBuffers(const ImportedTrace& trace,
                                              const CancelFlag& cancelled);

}  // namespace heapprofd
