// A Java heap as HeapGraph packets of a trace: what Perfetto and our own importer read
// back as the same tables, but for addresses, values of fields and damage.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/status.h"
#include "tables/imported_trace.h"

namespace heapprofd {

struct HeapGraphSource {
  int64_t pid = 0;
  uint64_t ts = 0;           // CLOCK_BOOTTIME
  uint32_t sequence_id = 0;  // of nobody else in the trace
};

// Hands over the serialized packets of the row `graph` of heap_graph; ends with the first
// error of `use`.
Status WriteHeapGraph(const ImportedTrace& trace,
                      uint32_t graph,
                      const HeapGraphSource& source,
                      const std::function<Status(const std::string& packet)>& use);

}  // namespace heapprofd
