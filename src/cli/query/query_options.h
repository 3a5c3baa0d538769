// The command lines of `heap_profile query` and of `trace_processor_shell`, which is the
// same program under the name that Perfetto's users know.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/query/result_printer.h"

namespace heapprofd {

enum class QueryDialect : uint8_t {
  kHeapProfile,          // heap_profile query TRACE... "SQL": a table by default
  kTraceProcessorShell,  // trace_processor_shell [-q FILE | -Q SQL] TRACE...: CSV
};

struct QueryOptions {
  std::vector<std::string> traces;
  std::vector<std::string> scripts;  // SQL, in order
  ResultFormat format = ResultFormat::kTable;
  bool interactive = false;  // a shell, after the scripts
  bool show_help = false;
  bool show_version = false;
};

// Reads the files that -q names. `arguments` without the program's and the verb's name.
Result<QueryOptions> ParseQueryOptions(QueryDialect dialect,
                                       const std::vector<std::string>& arguments);

std::string QueryHelp(QueryDialect dialect);

}  // namespace heapprofd
