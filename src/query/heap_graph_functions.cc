// Java heaps as trees, as Perfetto's standard library has them: by class along the
// shortest paths or the dominators, and the dominators themselves. Made when a query
// first reads them.
#include <numeric>

#include "query/flame_functions.h"
#include "query/graph_tree.h"
#include "query/heap_dominators.h"
#include "query/tree_tables.h"

namespace heapprofd {
namespace {

TableColumn RootTypeColumn(const GraphTree& tree) {
  return LiteralColumn("root_type", [&tree](size_t row) -> const char* {
    return tree.root_types[row] == HeapRootType::kNone ? nullptr
                                                       : NameOf(tree.root_types[row]);
  });
}

TableColumn HeapTypeColumn(const GraphTree& tree) {
  return LiteralColumn("heap_type", [&tree](size_t row) -> const char* {
    if (tree.is_native[row])
      return "HEAP_TYPE_NATIVE";
    return tree.heap_types[row] == HeapType::kUnknown ? nullptr
                                                      : NameOf(tree.heap_types[row]);
  });
}

constexpr NamedFigure kTreeFigures[] = {
    {"self_count", "cumulative_count", &FlameValues::count},
    {"self_size", "cumulative_size", &FlameValues::size},
};

// A table over a tree of classes, with the columns that all of them have in front.
Table TableOver(const ImportedTrace& trace, std::shared_ptr<const GraphTree> storage) {
  const GraphTree& at = *storage;
  const std::vector<ImportedHeapGraph>& graphs = trace.heap_graph.graphs;
  Table table;
  table.row_count = at.tree.nodes.size();
  table.columns = {
      NumberColumn("upid",
                   [&at, &graphs](size_t row) { return graphs[at.graphs[row]].upid; }),
      NumberColumn("graph_sample_ts",
                   [&at, &graphs](size_t row) { return graphs[at.graphs[row]].ts; }),
      NodeId(at.tree),
      NodeParent(at.tree),
      NodeName(at.tree),
      RootTypeColumn(at),
  };
  table.storage = std::move(storage);
  return table;
}

Table SummaryTable(const ImportedTrace& trace, GraphTree made) {
  auto storage = std::make_shared<const GraphTree>(std::move(made));
  Table table = TableOver(trace, storage);
  for (const NamedFigure& named : kTreeFigures)
    table.columns.push_back(NodeSelf(named.self_name, storage->tree, named.figure));
  for (const NamedFigure& named : kTreeFigures)
    table.columns.push_back(
        NodeCumulative(named.cumulative_name, storage->tree, named.figure));
  return table;
}

Table ClassTreeTable(const ImportedTrace& trace, GraphTree made) {
  auto storage = std::make_shared<const GraphTree>(std::move(made));
  Table table = TableOver(trace, storage);
  table.columns.push_back(HeapTypeColumn(*storage));
  for (const NamedFigure& named : kTreeFigures)
    table.columns.push_back(NodeSelf(named.self_name, storage->tree, named.figure));
  table.columns.push_back(
      TableColumn::Addresses("path_hash_stable", storage->path_hashes.span()));
  return table;
}

using MakeTreeTable = Table (*)(const ImportedTrace& trace, GraphTree made);

Status AddTree(const char* name,
               GraphHierarchy hierarchy,
               MakeTreeTable make,
               const ImportedTrace& trace,
               Database* database) {
  TableFunction function = FunctionWithColumnsOf(name, make(trace, {}));
  function.make = [&trace, database, hierarchy,
                   make](std::span<const Cell>) -> MadeTable {
    std::vector<uint32_t> graphs(trace.heap_graph.graphs.size());
    std::iota(graphs.begin(), graphs.end(), 0);
    HPD_TRY_ASSIGN(GraphTree made, BuildGraphTree(trace, graphs,
                                                  {.hierarchy = hierarchy,
                                                   .naming = GraphNaming::kClasses},
                                                  database->cancel_flag()));
    return std::make_shared<const Table>(make(trace, std::move(made)));
  };
  return database->AddFunction(std::move(function));
}

Table DominatorTable(HeapDominators made) {
  auto storage = std::make_shared<const HeapDominators>(std::move(made));
  Table table;
  table.row_count = storage->object.size();
  table.columns = {
      TableColumn::Ids("id", storage->object.span(), ColumnOrder::kAscending),
      TableColumn::Ids("idom_id", storage->dominator.span()),
      TableColumn::Integers("dominated_obj_count", storage->count.span()),
      TableColumn::Integers("dominated_size_bytes", storage->size.span()),
      TableColumn::Integers("dominated_native_size_bytes", storage->native_size.span()),
      TableColumn::Ids("depth", storage->depth.span()),
  };
  table.storage = storage;
  return table;
}

Status AddDominatorTree(const ImportedTrace& trace, Database* database) {
  TableFunction function =
      FunctionWithColumnsOf("heap_graph_dominator_tree", DominatorTable({}));
  function.make = [&trace, database](std::span<const Cell>) -> MadeTable {
    HPD_TRY_ASSIGN(HeapDominators found,
                   FindHeapDominators(trace, database->cancel_flag()));
    return std::make_shared<const Table>(DominatorTable(std::move(found)));
  };
  return database->AddFunction(std::move(function));
}

}  // namespace

Status AddHeapGraphFunctions(const ImportedTrace& trace, Database* database) {
  using enum GraphHierarchy;
  HPD_TRY(AddTree("android_heap_graph_class_summary_tree", kShortestPaths, SummaryTable,
                  trace, database));
  HPD_TRY(
      AddTree("_heap_graph_class_tree", kShortestPaths, ClassTreeTable, trace, database));
  HPD_TRY(AddTree("_heap_graph_dominator_class_tree", kDominators, ClassTreeTable, trace,
                  database));
  HPD_TRY(AddDominatorTree(trace, database));
  return AddHeapGraphSummaries(trace, database);
}

}  // namespace heapprofd
