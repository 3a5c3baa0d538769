// Table functions over call trees.
#pragma once

#include "base/status.h"
#include "query/content_rows.h"
#include "query/sqlite/database.h"
#include "tables/imported_trace.h"

namespace heapprofd {

// Perfetto's: experimental_flamegraph, android_heap_profile_summary_tree, and what the
// macros of its standard library expand to (query/sqlite/perfetto_sql.h). `trace` and
// `database` must outlive each other's use.
Status AddPerfettoFunctions(const ImportedTrace& trace, Database* database);

// Those over Java heaps: trees of classes and of dominators, and the ones below.
Status AddHeapGraphFunctions(const ImportedTrace& trace, Database* database);

// android_heap_graph_class_aggregation and android_heap_graph_stats.
Status AddHeapGraphSummaries(const ImportedTrace& trace, Database* database);

// heap_graph_object_data and heap_graph_primitive.
Status AddHeapGraphValues(const ImportedTrace& trace,
                          const ContentsOfGraphs& contents,
                          Database* database);

// Ours: flamegraph(dump, view), diff(dump_a, dump_b, view), and those below.
Status AddOwnFunctions(const ImportedTrace& trace, Database* database);

// heap_profile_growth(dump, view).
Status AddGrowth(const ImportedTrace& trace, Database* database);

// callers(name, dump) and top(view, n, dump).
Status AddSummingFunctions(const ImportedTrace& trace, Database* database);

}  // namespace heapprofd
