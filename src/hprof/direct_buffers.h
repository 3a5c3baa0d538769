// Memory outside the heap that java.nio.DirectByteBuffer objects stand for.
#pragma once

#include <cstdint>
#include <vector>

#include "hprof/load_graph.h"

namespace heapprofd::hprof {

struct DirectBuffer {
  uint32_t object = kNoObject;
  uint64_t address = 0;
  uint64_t bytes = 0;  // its capacity
};

// Those that have memory of their own, each address once: no parts and views of others,
// no mapped files. In the order of their addresses.
std::vector<DirectBuffer> DirectBuffersOf(const DumpFile& file,
                                          const HeapDump& dump,
                                          const HeapGraph& heap);

}  // namespace heapprofd::hprof
