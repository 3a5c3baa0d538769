// What a report tells beside call trees: the answers to SQL queries that anybody can ask
// of the same trace, so that there is one truth. Sums over all rows of
// heap_profile_histogram and heap_profile_estimate, and stacks, are what SQL gives, too,
// but are not made by it: that takes longer than all the rest of a report.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "base/status.h"
#include "query/trace_database.h"

namespace heapprofd {

// {"dumps": {"columns": ["id", ...], "rows": [[0, ...], ...]}, "processes": ..., ...}
Result<nlohmann::json> ReportFacts(TraceDatabase& database);

}  // namespace heapprofd
