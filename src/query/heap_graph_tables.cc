// heap_graph, heap_graph_object, _class, _reference.
#include "query/sqlite/columns.h"
#include "query/trace_tables.h"

namespace heapprofd {
namespace {

Table GraphTable(const ImportedTrace& trace) {
  const std::vector<ImportedHeapGraph>& rows = trace.heap_graph.graphs;
  Table table;
  table.row_count = rows.size();
  table.columns = {
      TableColumn::RowNumber("id"),
      NumberColumn("ts", [&rows](size_t row) { return rows[row].ts; }),
      NumberColumn("upid", [&rows](size_t row) { return rows[row].upid; }),
      NullColumn("dump_reason", ColumnType::kText),
      NumberColumn("heap_size", [&rows](size_t row) { return rows[row].heap_size; }),
      NumberColumn("truncated", [&rows](size_t row) { return rows[row].truncated; }),
  };
  return table;
}

Table ClassTable(const ImportedTrace& trace) {
  const std::vector<HeapClass>& rows = trace.heap_graph.classes;
  Table table;
  table.row_count = rows.size();
  table.columns = {
      TableColumn::RowNumber("id"),
      TextColumn("name", trace, [&rows](size_t row) { return rows[row].name; }),
      TextColumn("deobfuscated_name", trace,
                 [&rows](size_t row) { return rows[row].deobfuscated_name; }),
      TextColumn("location", trace, [&rows](size_t row) { return rows[row].location; }),
      IdColumn("superclass_id", [&rows](size_t row) { return rows[row].superclass; }),
      IdColumn("classloader_id", [&rows](size_t row) { return rows[row].classloader; }),
      LiteralColumn("kind", [&rows](size_t row) { return NameOf(rows[row].kind); }),
  };
  return table;
}

Table ObjectTable(const ImportedTrace& trace) {
  const HeapObjectTable& rows = trace.heap_graph.objects;
  const std::vector<ImportedHeapGraph>& graphs = trace.heap_graph.graphs;
  Table table;
  table.row_count = rows.row_count();
  table.columns = {
      TableColumn::RowNumber("id"),
      NumberColumn("upid",
                   [&rows, &graphs](size_t row) { return graphs[rows.graph[row]].upid; }),
      NumberColumn("graph_sample_ts",
                   [&rows, &graphs](size_t row) { return graphs[rows.graph[row]].ts; }),
      TableColumn::Integers("self_size", rows.self_size.span()),
      TableColumn::Integers("native_size", rows.native_size.span()),
      TableColumn::Ids("reference_set_id", rows.first_reference.span()),
      NumberColumn("reachable",
                   [&rows](size_t row) { return rows.root_distance[row] >= 0; }),
      LiteralColumn("heap_type",
                    [&rows](size_t row) -> const char* {
                      return rows.heap_type[row] == HeapType::kUnknown
                                 ? nullptr
                                 : NameOf(rows.heap_type[row]);
                    }),
      TableColumn::Ids("type_id", rows.type.span()),
      LiteralColumn("root_type",
                    [&rows](size_t row) -> const char* {
                      return rows.root_type[row] == HeapRootType::kNone
                                 ? nullptr
                                 : NameOf(rows.root_type[row]);
                    }),
      NumberColumn("root_distance",
                   [&rows](size_t row) { return rows.root_distance[row]; }),
  };
  return table;
}

Table ReferenceTable(const ImportedTrace& trace) {
  const HeapReferenceTable& rows = trace.heap_graph.references;
  const HeapObjectTable& objects = trace.heap_graph.objects;
  Table table;
  table.row_count = rows.row_count();
  table.columns = {
      TableColumn::RowNumber("id"),
      // The owner's references are consecutive; their set is named by the first one.
      IdColumn("reference_set_id",
               [&rows, &objects](size_t row) {
                 return objects.first_reference[rows.owner[row]];
               }),
      TableColumn::Ids("owner_id", rows.owner.span()),
      TableColumn::Ids("owned_id", rows.owned.span()),
      TextColumn("field_name", trace, rows.field_name.span()),
      TextColumn("field_type_name", trace, rows.field_type_name.span()),
      TextColumn("deobfuscated_field_name", trace, rows.deobfuscated_field_name.span()),
  };
  return table;
}

// Ours: where objects were, as heap_profile hprof names them.
Table AddressTable(const ImportedTrace& trace) {
  const Column<uint64_t>& addresses = trace.heap_graph.objects.address;
  Table table;
  table.row_count = addresses.size();
  table.columns = {
      TableColumn::RowNumber("id"),
      NumberColumn("address",
                   [&addresses](size_t row) {
                     return addresses[row] == 0
                                ? std::optional<int64_t>()
                                : std::optional(static_cast<int64_t>(addresses[row]));
                   }),
  };
  return table;
}

}  // namespace

void AddHeapGraphTables(const ImportedTrace& trace, NamedTables* tables) {
  tables->emplace_back("heap_graph", GraphTable(trace));
  tables->emplace_back("heap_graph_class", ClassTable(trace));
  tables->emplace_back("heap_graph_object", ObjectTable(trace));
  tables->emplace_back("heap_graph_reference", ReferenceTable(trace));
  tables->emplace_back("heap_graph_address", AddressTable(trace));
}

}  // namespace heapprofd
