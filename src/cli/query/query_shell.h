// The interactive shell: statements end with a semicolon and may span lines; lines that
// begin with a dot are commands of the shell. History and completion come from libedit.
#pragma once

#include "base/status.h"
#include "cli/query/result_printer.h"
#include "query/trace_database.h"

namespace heapprofd {

// Returns at the end of input or on .quit. Errors of queries are printed and do not end
// it.
Status RunQueryShell(TraceDatabase& database, ResultFormat format);

// Words that complete `prefix`, in any case: keywords, tables, functions, columns.
std::vector<std::string> CompletionsOf(const TraceDatabase& database,
                                       std::string_view prefix);

}  // namespace heapprofd
