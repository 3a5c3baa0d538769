// What is asked on the command lines of `heap_profile query` and of
// `trace_processor_shell`, which is the same program under the name that Perfetto's users
// know.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "cli/flag_table.h"
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
  bool interactive = false;    // a shell, after the scripts
  uint64_t memory_budget = 0;  // bytes; 0: there is none
};

// The flags; -q reads the file it names. `options` must outlive them.
std::vector<Flag> QueryFlags(QueryOptions& options);

// When all is taken: `heap_profile query TRACE... "SQL"` has the query last, and without
// one there is a shell. Errors are usage errors with a hint.
Status CheckQueryOptions(QueryDialect dialect, QueryOptions& options);

}  // namespace heapprofd
