// Packets that describe the machine and its processes: names, memory, packages, versions.
#pragma once

#include <cstdint>
#include <string_view>

#include "tables/trace_builder.h"

namespace heapprofd {

// Each takes the serialized message; `ts` is the packet's time, of the trace clock.
void ImportProcessTree(TraceBuilder& builder, std::string_view message);
void ImportProcessStats(TraceBuilder& builder, std::string_view message, int64_t ts);
void ImportSmaps(TraceBuilder& builder, std::string_view message, int64_t ts);
void ImportPackagesList(TraceBuilder& builder, std::string_view message);
void ImportSystemInfo(TraceBuilder& builder, std::string_view message);
void ImportTraceUuid(TraceBuilder& builder, std::string_view message);
void ImportTraceStats(TraceBuilder& builder, std::string_view message);

}  // namespace heapprofd
