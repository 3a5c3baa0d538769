// HeapGraph packets of one packet sequence to dumps.
//
// The packets of a dump are a series, as those of heap profiles are. Objects come in the
// order of their ids, as differences; references name their fields or follow the fields
// of the class and then of its superclasses.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "import/perfetto/heap_graph_dump.h"
#include "import/perfetto/heap_graph_rows.h"
#include "tables/trace_builder.h"

namespace heapprofd {

class HeapGraphImporter {
 public:
  // Both must outlive this.
  HeapGraphImporter(TraceBuilder* builder, HeapGraphQueue* queue)
      : builder_(builder), queue_(queue) {}

  // A serialized HeapGraph; `ts` is the packet's time, of the trace clock.
  void Add(std::string_view message, int64_t ts);

  // No more packets: what arrived of an unfinished dump is kept.
  void Finish();

 private:
  void AddField(std::string_view message);
  void AddLocation(std::string_view message);
  void AddType(std::string_view message);
  void AddRoots(std::string_view message);
  void AddDirectBuffer(std::string_view message);
  void AddObject(std::string_view message);
  void AddReferences(uint32_t number,
                     const std::vector<uint64_t>& fields,
                     const std::vector<uint64_t>& references,
                     const std::vector<uint64_t>& internals);
  void CheckIndex(uint64_t index);
  void FinishDump();
  void CountMalformed();

  TraceBuilder* builder_;
  HeapGraphQueue* queue_;
  HeapGraphDump* dump_ = nullptr;  // in the queue; null: none is open
  uint64_t last_id_ = 0;
  HeapType last_heap_type_ = HeapType::kUnknown;
  uint64_t next_index_ = 0;
};

}  // namespace heapprofd
