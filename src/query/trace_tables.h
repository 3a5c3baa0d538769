// The tables of a trace, each straight over the columns of ImportedTrace. Names, columns
// and meanings are those of Perfetto's SQL tables (docs/sql.md lists them all); the
// tables of own_tables.cc are ours.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "query/sqlite/table.h"
#include "tables/imported_trace.h"

namespace heapprofd {

using NamedTables = std::vector<std::pair<std::string, Table>>;

// `trace` must outlive the tables and may not change.

// stack_profile_*
void AddStackTables(const ImportedTrace& trace, NamedTables* tables);

// heap_profile*
void AddHeapProfileTables(const ImportedTrace& trace, NamedTables* tables);

// heap_graph*
void AddHeapGraphTables(const ImportedTrace& trace, NamedTables* tables);

// process, thread, stats, metadata, package_list, profiler_smaps
void AddSystemTables(const ImportedTrace& trace, NamedTables* tables);

// heap_dump, heap_profile_estimate, heap_profile_thread, heap_profile_quality,
// process_memory, heap_profile_unsampled_children, heap_profile_direct_buffer
void AddOwnTables(const ImportedTrace& trace, NamedTables* tables);

// heap_profile_label
void AddLabelTable(const ImportedTrace& trace, NamedTables* tables);

// heap_profile_allocator
void AddAllocatorTable(const ImportedTrace& trace, NamedTables* tables);

}  // namespace heapprofd
