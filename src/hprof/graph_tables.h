// A heap dump as the tables of heap_graph.h: for SQL under Perfetto's names.
//
// References are those that are not null, named as in a trace
// ("java.util.HashMap.table"); elements of arrays have no names, and what declares a
// field's type is not in a dump. An object holds its class by a reference only where
// nothing else keeps that for ever.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "hprof/dump_file.h"
#include "tables/trace_builder.h"

namespace heapprofd::hprof {

struct GraphSource {
  uint32_t upid = 0;
  int64_t ts = 0;
  bool is_damaged = false;
};

// Adds one dump as a graph. `notes` receives what could not be read.
Status AddGraph(const DumpFile& file,
                const HeapDump& dump,
                const GraphSource& source,
                TraceBuilder* builder,
                std::vector<std::string>* notes);

// Whether this is a file with the dump of a heap; false also for what cannot be looked
// into without taking it away, such as a pipe.
bool IsDump(const std::string& path);

// Adds all dumps of a file, one after the other in time.
Status ImportDumps(const std::string& path,
                   TraceBuilder* builder,
                   std::vector<std::string>* notes);

}  // namespace heapprofd::hprof
