// `heap_profile query` and `trace_processor_shell`.
#pragma once

#include <string>
#include <vector>

#include "cli/query/query_options.h"

namespace heapprofd {

// Returns the exit code: 0, 1 when a file or query failed, 2 for a wrong command line,
// 130 when Ctrl-C stopped a query.
int RunQueryCommand(QueryDialect dialect, const std::vector<std::string>& arguments);

}  // namespace heapprofd
