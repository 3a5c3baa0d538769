// Graphs of managed heaps in a report. Each is there as two heaps, of which the page shows
// call trees like those of other heaps: what objects hang on by the shortest path from a
// root, and what they are dominated by, which is what would be freed with them.
#pragma once

#include <cstddef>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "base/status.h"
#include "query/trace_database.h"
#include "report/report_functions.h"

namespace heapprofd {

struct ReportRoom {
  size_t nodes = 0;  // of all trees together
  size_t trees = 0;
};

// What other heaps must leave so that the last graph is in the report.
ReportRoom LeastRoomForGraphs(const ImportedTrace& trace);

// Adds rows to `facts`: "dumps", whose ids are those behind the trace's own, with what
// nothing holds (unreachable_size, unreachable_count), and "trees"
// (is_folded: what is too deep or too much counts for the node above it). Appends the
// trees to `out`. Of too many graphs the last ones.
Status AppendGraphs(TraceDatabase& database,
                    ReportRoom room,
                    ReportFunctions& functions,
                    nlohmann::json* facts,
                    std::string& out);

}  // namespace heapprofd
