// What the header of a dump counts, as it was read.
#pragma once

#include <string_view>

#include "profile/model.h"
#include "trace/imported_trace.h"

namespace heapprofd {

// `message`: a serialized ProfilePacket.ProcessStats, and ProcessHeapSamples.Quality.
// Malformed bytes end as those of MessageReader.
DumpStats ReadDumpStats(std::string_view message);
Quality ReadDumpQuality(std::string_view message);

}  // namespace heapprofd
