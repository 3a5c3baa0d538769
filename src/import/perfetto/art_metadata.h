// ArtProcessMetadata: what Android's runtime says beside a Java heap, such as that memory
// was out when it was dumped.
#pragma once

#include <cstdint>
#include <string_view>

#include "import/perfetto/heap_graph_rows.h"
#include "tables/trace_builder.h"

namespace heapprofd {

// The serialized message; `ts` is the packet's time, of the trace clock. The stack of the
// thread that ran out of memory is not read.
void ImportArtMetadata(TraceBuilder& builder,
                       HeapGraphQueue& graphs,
                       std::string_view message,
                       int64_t ts);

}  // namespace heapprofd
