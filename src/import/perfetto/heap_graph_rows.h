// From dumps of Java heaps to the tables of heap_graph.h.
//
// Objects on the zygote's and the boot image's heap count as roots. root_distance is the
// number of references on the shortest way from a root, where referents of weak,
// finalizer and phantom references are not followed. native_size is what Android's
// NativeAllocationRegistry holds for an object. Traces from before Android 12 do not tell
// the superclass of a class: it is that of its class object then.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <utility>

#include "import/perfetto/heap_graph_dump.h"
#include "tables/trace_builder.h"

namespace heapprofd {

// The dumps of a trace. Those of several processes may be interleaved; they become rows
// in the order in which they begin.
class HeapGraphQueue {
 public:
  explicit HeapGraphQueue(TraceBuilder* builder) : builder_(builder) {}

  // Valid until it ends.
  HeapGraphDump* Begin();

  void End(HeapGraphDump* dump);

  // The row of heap_graph of a process and time, which is made when there is none yet.
  ImportedHeapGraph& RowAt(uint32_t upid, int64_t ts);

 private:
  TraceBuilder* builder_;
  std::deque<std::unique_ptr<HeapGraphDump>> dumps_;
  std::map<std::pair<uint32_t, int64_t>, uint32_t> rows_;
};

}  // namespace heapprofd
