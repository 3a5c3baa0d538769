// Who holds the direct buffers of a virtual machine, and which native stacks have
// allocated their memory.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/status.h"
#include "cli/hprof/opened/opened_dump.h"
#include "cli/managed/native_side.h"
#include "cli/managed/resident_table.h"
#include "tables/heap_graph.h"

namespace heapprofd {

struct HeldBuffers {
  std::vector<BufferOwner> owners;            // largest first
  std::optional<UnsampledBuffers> unsampled;  // nullopt: there are none
};

// `buffers`: those of the dump, which is of this process.
Result<HeldBuffers> FindHolders(const std::vector<HeapDirectBuffer>& buffers,
                                int64_t pid,
                                OpenedDump* opened,
                                NativeSide* native);

}  // namespace heapprofd
