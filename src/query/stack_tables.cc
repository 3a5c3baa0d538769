// stack_profile_mapping, _frame, _callsite and _symbol.
#include "query/sqlite/columns.h"
#include "query/trace_tables.h"

namespace heapprofd {
namespace {

Table MappingTable(const ImportedTrace& trace) {
  const std::vector<ImportedMapping>& rows = trace.mappings;
  Table table;
  table.row_count = rows.size();
  table.columns = {
      TableColumn::RowNumber("id"),
      TextColumn("build_id", trace, [&rows](size_t row) { return rows[row].build_id; }),
      NumberColumn("exact_offset",
                   [&rows](size_t row) { return rows[row].exact_offset; }),
      NumberColumn("start_offset",
                   [&rows](size_t row) { return rows[row].start_offset; }),
      NumberColumn("start", [&rows](size_t row) { return rows[row].start; }),
      NumberColumn("end", [&rows](size_t row) { return rows[row].end; }),
      NumberColumn("load_bias", [&rows](size_t row) { return rows[row].load_bias; }),
      TextColumn("name", trace, [&rows](size_t row) { return rows[row].name; }),
  };
  return table;
}

Table StackFrameTable(const ImportedTrace& trace) {
  const FrameTable& rows = trace.frames;
  Table table;
  table.row_count = rows.row_count();
  table.columns = {
      TableColumn::RowNumber("id"),
      TextColumn("name", trace, rows.name.span()),
      TableColumn::Ids("mapping", rows.mapping.span()),
      TableColumn::Addresses("rel_pc", rows.rel_pc.span()),
      TableColumn::Ids("symbol_set_id", rows.symbol_set.span()),
      TextColumn("deobfuscated_name", trace, rows.deobfuscated_name.span()),
      TextColumn("type", trace, rows.type.span()),
  };
  return table;
}

Table StackCallsiteTable(const ImportedTrace& trace) {
  const CallsiteTable& rows = trace.callsites;
  Table table;
  table.row_count = rows.row_count();
  table.columns = {
      TableColumn::RowNumber("id"),
      NumberColumn("depth", [&rows](size_t row) { return rows.depth[row]; }),
      TableColumn::Ids("parent_id", rows.parent.span()),
      TableColumn::Ids("frame_id", rows.frame.span()),
  };
  return table;
}

Table StackSymbolTable(const ImportedTrace& trace) {
  const SymbolTable& rows = trace.symbols;
  Table table;
  table.row_count = rows.row_count();
  table.columns = {
      TableColumn::RowNumber("id"),
      TableColumn::Ids("symbol_set_id", rows.set.span(), ColumnOrder::kAscending),
      TextColumn("name", trace, rows.name.span()),
      TextColumn("source_file", trace, rows.source_file.span()),
      NumberColumn("line_number",
                   [&rows](size_t row) -> std::optional<uint32_t> {
                     if (rows.line[row] == 0)
                       return std::nullopt;
                     return rows.line[row];
                   }),
      NumberColumn("inlined",
                   [&rows](size_t row) {
                     return row + 1 < rows.row_count() &&
                            rows.set[row + 1] == rows.set[row];
                   }),
  };
  return table;
}

}  // namespace

void AddStackTables(const ImportedTrace& trace, NamedTables* tables) {
  tables->emplace_back("stack_profile_mapping", MappingTable(trace));
  tables->emplace_back("stack_profile_frame", StackFrameTable(trace));
  tables->emplace_back("stack_profile_callsite", StackCallsiteTable(trace));
  tables->emplace_back("stack_profile_symbol", StackSymbolTable(trace));
}

}  // namespace heapprofd
