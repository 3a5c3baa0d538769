// Table functions over call trees.
#pragma once

#include "base/status.h"
#include "query/database.h"
#include "trace/imported_trace.h"

namespace heapprofd {

// Perfetto's: experimental_flamegraph, android_heap_profile_summary_tree, and what the
// macros of its standard library expand to (query/perfetto_sql.h). `trace` and `database`
// must outlive each other's use.
Status AddPerfettoFunctions(const ImportedTrace& trace, Database* database);

// Ours: flamegraph(dump, view), diff(dump_a, dump_b, view), callers(name, dump) and
// top(view, n, dump).
Status AddOwnFunctions(const ImportedTrace& trace, Database* database);

}  // namespace heapprofd
