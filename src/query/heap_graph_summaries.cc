// Java heaps in figures, as Perfetto's standard library has them: a row per class, and a
// row per heap beside what the kernel says of its process.
#include <map>
#include <tuple>

#include "profile/java_classes.h"
#include "query/flame_functions.h"
#include "query/heap_dominators.h"
#include "query/sum.h"
#include "query/tree_tables.h"

namespace heapprofd {
namespace {

struct Figures {
  int64_t count = 0;
  int64_t size = 0;
  int64_t native_size = 0;

  void Add(int64_t more_count, int64_t more_size, int64_t more_native_size) {
    count = Sum(count, more_count);
    size = Sum(size, more_size);
    native_size = Sum(native_size, more_native_size);
  }
};

struct ClassRow {
  uint32_t graph = 0;
  uint32_t type = 0;
  Figures all;
  Figures reachable;
  Figures dominated;  // what its objects hold alone, those below one of the class once
};

// In the order of processes, times and classes.
std::vector<ClassRow> AggregateClasses(const ImportedTrace& trace,
                                       const HeapDominators& dominators) {
  using Key = std::tuple<uint32_t, int64_t, uint32_t>;
  const HeapObjectTable& objects = trace.heap_graph.objects;
  std::map<Key, ClassRow> rows;
  const auto row_of = [&](uint32_t object) -> ClassRow& {
    const ImportedHeapGraph& graph = trace.heap_graph.graphs[objects.graph[object]];
    ClassRow& row = rows[{graph.upid, graph.ts, objects.type[object]}];
    row.graph = objects.graph[object];
    row.type = objects.type[object];
    return row;
  };
  for (uint32_t object = 0; object < objects.row_count(); ++object) {
    ClassRow& row = row_of(object);
    row.all.Add(1, objects.self_size[object], objects.native_size[object]);
    if (objects.root_distance[object] >= 0)
      row.reachable.Add(1, objects.self_size[object], objects.native_size[object]);
  }
  for (size_t i = 0; i < dominators.object.size(); ++i) {
    if (dominators.is_first_of_type[i])
      row_of(dominators.object[i])
          .dominated.Add(dominators.count[i], dominators.size[i],
                         dominators.native_size[i]);
  }
  std::vector<ClassRow> list;
  list.reserve(rows.size());
  for (const auto& [key, row] : rows)
    list.push_back(row);
  return list;
}

// Classes that everybody uses: who has their objects is of interest.
bool IsLibraryOrArray(std::string_view name) {
  constexpr std::string_view kPrefixes[] = {"j$.", "kotlinx.coroutines.",
                                            "kotlinx.atomicfu."};
  constexpr std::string_view kArrays[] = {"int[",   "long[",  "byte[",   "char[",
                                          "short[", "float[", "double[", "boolean["};
  if (name.starts_with("java."))
    return DescribedClass(name).empty();
  if (name.starts_with("android.util."))
    return name.find("Array") != std::string_view::npos;
  const auto is_start = [name](std::string_view start) {
    return name.starts_with(start);
  };
  return std::ranges::any_of(kPrefixes, is_start) ||
         std::ranges::any_of(kArrays, is_start);
}

void AddFigureColumns(const std::vector<ClassRow>& rows,
                      const std::string& prefix,
                      Figures ClassRow::*part,
                      std::vector<TableColumn>* columns) {
  const auto add = [&](const char* name, int64_t Figures::*figure) {
    columns->push_back(NumberColumn(prefix + name, [&rows, part, figure](size_t row) {
      return rows[row].*part.*figure;
    }));
  };
  add("obj_count", &Figures::count);
  add("size_bytes", &Figures::size);
  add("native_size_bytes", &Figures::native_size);
}

Table AggregationTable(const ImportedTrace& trace, std::vector<ClassRow> made) {
  auto storage = std::make_shared<const std::vector<ClassRow>>(std::move(made));
  const std::vector<ClassRow>& rows = *storage;
  const auto graph_of = [&trace, &rows](size_t row) -> const ImportedHeapGraph& {
    return trace.heap_graph.graphs[rows[row].graph];
  };
  const auto name_of = [&trace, &rows](size_t row) {
    return trace.heap_graph.classes[rows[row].type].ShownName();
  };
  Table table;
  table.row_count = rows.size();
  table.columns = {
      NumberColumn("upid", [graph_of](size_t row) { return graph_of(row).upid; }),
      NumberColumn("graph_sample_ts",
                   [graph_of](size_t row) { return graph_of(row).ts; }),
      NumberColumn("type_id", [&rows](size_t row) { return rows[row].type; }),
      TextColumn("type_name", trace, name_of),
      NumberColumn("is_libcore_or_array",
                   [&trace, name_of](size_t row) {
                     return IsLibraryOrArray(trace.Text(name_of(row)));
                   }),
  };
  AddFigureColumns(rows, "", &ClassRow::all, &table.columns);
  AddFigureColumns(rows, "reachable_", &ClassRow::reachable, &table.columns);
  AddFigureColumns(rows, "dominated_", &ClassRow::dominated, &table.columns);
  table.storage = storage;
  return table;
}

Status AddAggregation(const ImportedTrace& trace, Database* database) {
  TableFunction function = FunctionWithColumnsOf("android_heap_graph_class_aggregation",
                                                 AggregationTable(trace, {}));
  function.make = [&trace, database](std::span<const Cell>) -> MadeTable {
    HPD_TRY_ASSIGN(const HeapDominators found,
                   FindHeapDominators(trace, database->cancel_flag()));
    return std::make_shared<const Table>(
        AggregationTable(trace, AggregateClasses(trace, found)));
  };
  return database->AddFunction(std::move(function));
}

// Of what the kernel said before a dump and at most half a second behind it, the value
// that is nearest.
std::string NearestValue(const std::string& name) {
  return "(SELECT value FROM (SELECT value, abs(m.ts - b.graph_sample_ts) AS distance "
         "FROM process_memory m WHERE m.upid = b.upid AND m.name = '" +
         name + "' AND m.ts <= b.graph_sample_ts + 500000000) ORDER BY distance LIMIT 1)";
}

// Perfetto's columns and their meaning.
std::string StatsQuery() {
  return R"(
  WITH b AS (
    SELECT upid, graph_sample_ts, sum(self_size) AS total_heap_size,
      sum(native_size) AS total_native_alloc_registry_size, count(*) AS total_obj_count,
      sum(iif(reachable, self_size, 0)) AS reachable_heap_size,
      sum(iif(reachable, native_size, 0)) AS reachable_native_alloc_registry_size,
      sum(reachable) AS reachable_obj_count
    FROM heap_graph_object
    GROUP BY upid, graph_sample_ts)
  SELECT b.upid, b.graph_sample_ts, b.graph_sample_ts - process.start_ts AS process_uptime,
    total_heap_size, total_native_alloc_registry_size, total_obj_count,
    reachable_heap_size, reachable_native_alloc_registry_size, reachable_obj_count,
    )" + NearestValue("oom_score_adj") +
         " AS oom_score_adj, " + NearestValue("mem.rss.anon") + " + coalesce(" +
         NearestValue("mem.swap") + ", 0) AS anon_rss_and_swap_size, " +
         NearestValue("mem.dmabuf_rss") + R"( AS dmabuf_rss_size,
    heap_size AS art_bytes_allocated,
    (dump_reason = 'OOME' OR (SELECT str_value FROM metadata
      WHERE name = 'trace_trigger') = 'com.android.telemetry.art-outofmemory')
      AS is_out_of_memory_error,
    allocation_size_bytes AS oome_failing_allocation_size,
    free_bytes_until_oom AS oome_remaining_art_free_bytes
  FROM b JOIN process USING (upid)
  LEFT JOIN heap_graph ON b.upid = heap_graph.upid AND b.graph_sample_ts = heap_graph.ts
  LEFT JOIN android_heap_graph_java_oome_details ON heap_graph.id = heap_graph_id)";
}

}  // namespace

Status AddHeapGraphSummaries(const ImportedTrace& trace, Database* database) {
  HPD_TRY(AddAggregation(trace, database));
  return database->AddView("android_heap_graph_stats", StatsQuery());
}

}  // namespace heapprofd
