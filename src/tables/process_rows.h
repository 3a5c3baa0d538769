// Which rows of a trace are those of a process, for who asks for many processes: looking
// through all rows for each would take the square of their number.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tables/imported_trace.h"

namespace heapprofd {

class ProcessRows {
 public:
  // Of the trace as it is now, which outlives this.
  explicit ProcessRows(const ImportedTrace& trace);

  // Rows of heap_dump, of all heaps, and of one in the order of the file.
  std::span<const uint32_t> DumpsOf(uint32_t upid) const;
  std::span<const uint32_t> DumpsOf(uint32_t upid, StringId heap) const;

  // Rows of ImportedTrace::counters, in the order of the file.
  std::span<const uint32_t> CountersOf(uint32_t upid) const;

  // The last of ImportedTrace::unsampled_children; nullptr: there is none.
  const ForkedChildren* ChildrenOf(uint32_t upid) const;

 private:
  const ImportedTrace& trace_;
  std::vector<uint32_t> dumps_;     // by process and heap
  std::vector<uint32_t> counters_;  // by process
  std::vector<uint32_t> children_;  // by process
};

}  // namespace heapprofd
