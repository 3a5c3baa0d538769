// Reads trace files into an ImportedTrace.
#pragma once

#include <string>

#include "base/status.h"
#include "import/perfetto/packet_reader.h"
#include "tables/imported_trace.h"
#include "tables/trace_builder.h"

namespace heapprofd {

// Adds the trace of one file ("-": standard input) to what `builder` has: all that
// ReadPackets takes, in one pass and without keeping the file. Its processes are others
// than those of files read before. Errors: as ReadPackets; damage is in the report and
// counted in the trace's stats.
Result<ReadReport> ReadTrace(const std::string& path, TraceBuilder& builder);

Result<ReadReport> ReadTrace(ByteSource& source,
                             const std::string& name,
                             TraceBuilder& builder);

}  // namespace heapprofd
