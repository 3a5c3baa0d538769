// What the header of a dump counts, and what a process says of its forked children.
#pragma once

#include <string_view>

#include "profile/model.h"
#include "tables/imported_trace.h"
#include "tables/trace_builder.h"

namespace heapprofd {

// `message`: a serialized ProfilePacket.ProcessStats, and ProcessHeapSamples.Quality.
// Malformed bytes end as those of MessageReader.
DumpStats ReadDumpStats(std::string_view message);
Quality ReadDumpQuality(std::string_view message);

// Adds a row to ImportedTrace::unsampled_children. `message`: an
// UnsampledChildrenMessage.
void ImportUnsampledChildren(TraceBuilder& builder, std::string_view message);

}  // namespace heapprofd
