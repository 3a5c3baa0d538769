// The values of fields: heap_graph_object_data and heap_graph_primitive. Traces have
// those of bitmaps. HPROF files have all, of which none is read: a table without them
// would say that there are none.
#include <algorithm>

#include "query/flame_functions.h"
#include "query/tree_tables.h"

namespace heapprofd {
namespace {

Table ObjectDataTable(const ImportedTrace& trace) {
  const std::vector<HeapObjectData>& rows = trace.heap_graph.object_data;
  Table table;
  table.row_count = rows.size();
  table.columns = {
      TableColumn::RowNumber("id"),
      NumberColumn("field_set_id",
                   [&rows](size_t row) { return rows[row].first_primitive; }),
      NullColumn("value_string", ColumnType::kText),
      NullColumn("array_element_type", ColumnType::kText),
      NullColumn("array_element_count"),
      NullColumn("array_data_id"),
      NullColumn("array_data_hash"),
  };
  return table;
}

TableColumn ValueOf(const char* name, const char* type, const ImportedTrace& trace) {
  const std::vector<HeapPrimitive>& rows = trace.heap_graph.primitives;
  return NumberColumn(name, [&rows, &trace, type](size_t row) {
    return trace.Text(rows[row].field_type) == type ? std::optional(rows[row].value)
                                                    : std::nullopt;
  });
}

Table PrimitiveTable(const ImportedTrace& trace) {
  const std::vector<HeapPrimitive>& rows = trace.heap_graph.primitives;
  Table table;
  table.row_count = rows.size();
  table.columns = {
      TableColumn::RowNumber("id"),
      NumberColumn("field_set_id", [&rows](size_t row) { return rows[row].set; }),
      TextColumn("field_name", trace,
                 [&rows](size_t row) { return rows[row].field_name; }),
      TextColumn("field_type", trace,
                 [&rows](size_t row) { return rows[row].field_type; }),
      NullColumn("bool_value"),
      NullColumn("byte_value"),
      NullColumn("char_value"),
      NullColumn("short_value"),
      ValueOf("int_value", "int", trace),
      ValueOf("long_value", "long", trace),
      NullColumn("float_value", ColumnType::kReal),
      NullColumn("double_value", ColumnType::kReal),
  };
  return table;
}

Status AddValueTable(const char* name,
                     Table (*make)(const ImportedTrace& trace),
                     const ImportedTrace& trace,
                     Database* database) {
  TableFunction function = FunctionWithColumnsOf(name, make(trace));
  function.make = [&trace, name, make](std::span<const Cell>) -> MadeTable {
    if (std::ranges::any_of(trace.heap_graph.graphs, &ImportedHeapGraph::is_dump_file))
      return Status(StatusCode::kNotFound,
                    std::string("cannot read ") + name +
                        ": the values of fields and arrays are not read from heap dumps "
                        "of Java; heap_graph_object and heap_graph_reference have what "
                        "there is");
    return std::make_shared<const Table>(make(trace));
  };
  return database->AddFunction(std::move(function));
}

}  // namespace

Status AddHeapGraphValues(const ImportedTrace& trace, Database* database) {
  HPD_TRY(AddValueTable("heap_graph_object_data", ObjectDataTable, trace, database));
  return AddValueTable("heap_graph_primitive", PrimitiveTable, trace, database);
}

}  // namespace heapprofd
