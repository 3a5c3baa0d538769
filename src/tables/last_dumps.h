// Which dumps are the last ones: by their times, as sums over dumps are made. Of several
// at one time it is the last one in the file.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "tables/imported_trace.h"

namespace heapprofd {

// Of each native heap: rows of heap_dump, ascending.
std::vector<uint32_t> LastDumps(const ImportedTrace& trace);

// Of each process (upid), of those with figures on the quality of the profile: the row of
// heap_dump.
std::map<uint32_t, uint32_t> LastDumpsWithQuality(const ImportedTrace& trace);

// Of each process (upid): the row of heap_graph.
std::map<uint32_t, uint32_t> LastGraphs(const ImportedTrace& trace);

}  // namespace heapprofd
