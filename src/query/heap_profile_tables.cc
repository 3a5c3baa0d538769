// heap_profile_allocation and heap_profile.
#include <algorithm>

#include "query/sqlite/columns.h"
#include "query/trace_tables.h"

namespace heapprofd {
namespace {

bool AreInTimeOrder(const std::vector<ImportedDump>& dumps) {
  return std::is_sorted(
      dumps.begin(), dumps.end(),
      [](const ImportedDump& a, const ImportedDump& b) { return a.ts < b.ts; });
}

Table HeapProfileAllocationTable(const ImportedTrace& trace) {
  const AllocationTable& rows = trace.allocations;
  const std::vector<ImportedDump>& dumps = trace.dumps;
  Table table;
  table.row_count = rows.row_count();
  TableColumn ts = NumberColumn(
      "ts", [&rows, &dumps](size_t row) { return dumps[rows.dump[row]].ts; });
  if (AreInTimeOrder(dumps))
    ts.order = ColumnOrder::kAscending;
  table.columns = {
      TableColumn::RowNumber("id"),
      std::move(ts),
      NumberColumn("upid",
                   [&rows, &dumps](size_t row) { return dumps[rows.dump[row]].upid; }),
      TextColumn("heap_name", trace,
                 [&rows, &dumps](size_t row) { return dumps[rows.dump[row]].heap_name; }),
      TableColumn::Ids("callsite_id", rows.callsite.span()),
      TableColumn::Integers("count", rows.count.span()),
      TableColumn::Integers("size", rows.size.span()),
  };
  return table;
}

// Where a dump's interval begins; its own moment when the trace does not tell.
int64_t StartOf(const ImportedDump& dump) {
  return dump.start_ts.value_or(dump.ts);
}

Table HeapProfileTable(const ImportedTrace& trace) {
  const std::vector<ImportedDump>& rows = trace.dumps;
  Table table;
  table.row_count = rows.size();
  table.columns = {
      TableColumn::RowNumber("id"),
      NumberColumn("ts", [&rows](size_t row) { return StartOf(rows[row]); }),
      NumberColumn("ts_end", [&rows](size_t row) { return rows[row].ts; }),
      NumberColumn("dur",
                   [&rows](size_t row) {
                     return static_cast<uint64_t>(rows[row].ts) -
                            static_cast<uint64_t>(StartOf(rows[row]));
                   }),
      NumberColumn("upid", [&rows](size_t row) { return rows[row].upid; }),
      TextColumn("heap_name", trace, [&rows](size_t row) { return rows[row].heap_name; }),
  };
  return table;
}

}  // namespace

void AddHeapProfileTables(const ImportedTrace& trace, NamedTables* tables) {
  tables->emplace_back("heap_profile_allocation", HeapProfileAllocationTable(trace));
  tables->emplace_back("heap_profile", HeapProfileTable(trace));
}

}  // namespace heapprofd
