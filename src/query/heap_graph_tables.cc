// heap_graph, heap_graph_object, _class, _reference, and what is told of heaps that were
// full.
#include <memory>
#include <mutex>
#include <vector>

#include "base/column.h"
#include "query/content_rows.h"
#include "query/heap_dominators.h"
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
      TextColumn("dump_reason", trace,
                 [&rows](size_t row) { return rows[row].dump_reason; }),
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

TableColumn ObjectDataColumn(const HeapGraphTables& tables) {
  return NumberColumn("object_data_id", [&tables](size_t row) {
    return ObjectDataRowOf(tables, static_cast<uint32_t>(row));
  });
}

// Ours: where objects were, as heap_profile hprof names them.
TableColumn AddressColumn(const Column<uint64_t>& addresses) {
  TableColumn column = NumberColumn("address", [&addresses](size_t row) {
    return row >= addresses.size() || addresses[row] == 0
               ? std::optional<int64_t>()
               : std::optional(static_cast<int64_t>(addresses[row]));
  });
  column.is_hidden = true;
  return column;
}

// Ours: what would be freed with an object. Dominators are found when a query first asks.
TableColumn RetainedSizeColumn(const ImportedTrace& trace) {
  struct Retained {
    std::once_flag is_made;
    Column<int64_t> sizes;  // 0: it cannot be reached
  };

  const auto retained = std::make_shared<Retained>();
  TableColumn column = NumberColumn("retained_size", [&trace, retained](size_t row) {
    std::call_once(retained->is_made, [&trace, &sizes = retained->sizes] {
      const CancelFlag never = false;
      sizes.resize(trace.heap_graph.objects.row_count(), 0);
      const Result<HeapDominators> found = FindHeapDominators(trace, never);
      for (size_t i = 0; found.ok() && i < found.value().object.size(); ++i)
        sizes[found.value().object[i]] = found.value().size[i];
    });
    return retained->sizes[row];
  });
  column.is_hidden = true;
  return column;
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
      ObjectDataColumn(trace.heap_graph),
      AddressColumn(rows.address),
      RetainedSizeColumn(trace),
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

Table OutOfMemoryTable(const ImportedTrace& trace) {
  const std::vector<OutOfMemoryDetails>& rows = trace.heap_graph.out_of_memory;
  Table table;
  table.row_count = rows.size();
  table.columns = {
      TableColumn::RowNumber("id"),
      NumberColumn("heap_graph_id", [&rows](size_t row) { return rows[row].graph; }),
      NumberColumn("allocation_size_bytes",
                   [&rows](size_t row) { return rows[row].allocation_size; }),
      NumberColumn("total_bytes_free",
                   [&rows](size_t row) { return rows[row].total_bytes_free; }),
      NumberColumn("free_bytes_until_oom",
                   [&rows](size_t row) { return rows[row].free_bytes_until_oom; }),
      TextColumn("error_msg", trace,
                 [&rows](size_t row) { return rows[row].error_message; }),
  };
  return table;
}

}  // namespace

void AddHeapGraphTables(const ImportedTrace& trace, NamedTables* tables) {
  tables->emplace_back("heap_graph", GraphTable(trace));
  tables->emplace_back("heap_graph_class", ClassTable(trace));
  tables->emplace_back("heap_graph_object", ObjectTable(trace));
  tables->emplace_back("heap_graph_reference", ReferenceTable(trace));
  tables->emplace_back("android_heap_graph_java_oome_details", OutOfMemoryTable(trace));
}

}  // namespace heapprofd
