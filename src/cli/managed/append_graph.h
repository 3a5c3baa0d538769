// A Java heap behind what is in a finished trace. The recording and the heap have clocks
// and process in common, so that both stand on one timeline.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/files/file_place.h"
#include "base/status.h"
#include "cli/hprof/opened/opened_dump.h"
#include "tables/heap_graph.h"

namespace heapprofd {

struct HeapMoment {
  int64_t pid = 0;
  uint64_t ts = 0;  // CLOCK_BOOTTIME
  // The addresses of direct buffers are looked up in the list of live blocks at the
  // recording's end: buffers of another moment would find the blocks of others.
  bool with_buffers = false;
};

// `opened`: a dump. All or nothing. Gives the direct buffers that were written. Notes are printed.
Result<std::vector<HeapDirectBuffer>> AppendGraph(OpenedDump* opened,
                                                  const HeapMoment& moment,
                                                  const FilePlace& place);

}  // namespace heapprofd
