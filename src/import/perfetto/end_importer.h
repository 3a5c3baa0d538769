// What a trace says of its recording as a whole: how it was configured, and what its
// recorder knew at the end. Malformed bytes end as those of MessageReader.
#pragma once

#include <string_view>

#include "tables/trace_builder.h"

namespace heapprofd {

// The first of several stays.
void ImportTraceConfig(TraceBuilder& builder, std::string_view message);
void ImportRecordingEnd(TraceBuilder& builder, std::string_view message);

// Of a process of which there are several, the last counts.
void ImportProcessEnd(TraceBuilder& builder, std::string_view message);

}  // namespace heapprofd
