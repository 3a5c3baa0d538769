// The table function behind heap_profile_growth.
#pragma once

#include "query/sqlite/database.h"
#include "query/sqlite/virtual_table.h"
#include "tables/imported_trace.h"

namespace heapprofd {

// `trace` and `cancelled` must outlive it and its tables; kUnavailable when cancelled.
TableFunction GrowthFunction(const ImportedTrace& trace, const CancelFlag& cancelled);

}  // namespace heapprofd
