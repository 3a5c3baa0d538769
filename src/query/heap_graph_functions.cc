// Java heaps as trees, as Perfetto's standard library has them:
// android_heap_graph_class_summary_tree and heap_graph_dominator_tree. Made when a query
// first reads them.
#include <numeric>

#include "object_graph/dominators.h"
#include "query/flame_functions.h"
#include "query/graph_tree.h"
#include "query/sum.h"
#include "query/tree_tables.h"

namespace heapprofd {
namespace {

Table ClassTreeTable(const ImportedTrace& trace, GraphTree made) {
  auto storage = std::make_shared<const GraphTree>(std::move(made));
  const GraphTree& at = *storage;
  const std::vector<ImportedHeapGraph>& graphs = trace.heap_graph.graphs;
  constexpr NamedFigure kFigures[] = {
      {"self_count", "cumulative_count", &FlameValues::count},
      {"self_size", "cumulative_size", &FlameValues::size},
  };
  Table table;
  table.storage = storage;
  table.row_count = at.tree.nodes.size();
  table.columns = {
      NumberColumn("upid",
                   [&at, &graphs](size_t row) { return graphs[at.graphs[row]].upid; }),
      NumberColumn("graph_sample_ts",
                   [&at, &graphs](size_t row) { return graphs[at.graphs[row]].ts; }),
      NodeId(at.tree),
      NodeParent(at.tree),
      NodeName(at.tree),
      LiteralColumn("root_type",
                    [&at](size_t row) -> const char* {
                      return at.root_types[row] == HeapRootType::kNone
                                 ? nullptr
                                 : NameOf(at.root_types[row]);
                    }),
  };
  for (const NamedFigure& named : kFigures)
    table.columns.push_back(NodeSelf(named.self_name, at.tree, named.figure));
  for (const NamedFigure& named : kFigures)
    table.columns.push_back(NodeCumulative(named.cumulative_name, at.tree, named.figure));
  return table;
}

Status AddClassTree(const ImportedTrace& trace, Database* database) {
  TableFunction function = FunctionWithColumnsOf("android_heap_graph_class_summary_tree",
                                                 ClassTreeTable(trace, {}));
  function.make = [&trace, database](std::span<const Cell>) -> MadeTable {
    std::vector<uint32_t> graphs(trace.heap_graph.graphs.size());
    std::iota(graphs.begin(), graphs.end(), 0);
    HPD_TRY_ASSIGN(GraphTree made, BuildGraphTree(trace, graphs, GraphNaming::kClasses,
                                                  database->cancel_flag()));
    return std::make_shared<const Table>(ClassTreeTable(trace, std::move(made)));
  };
  return database->AddFunction(std::move(function));
}

// A row per object that can be reached.
struct HeapDominators {
  Column<uint32_t> object;
  Column<uint32_t> dominator;  // kNoId: a root, or held by several of them
  Column<int64_t> count;       // of objects dominated, with itself
  Column<int64_t> size;
  Column<int64_t> native_size;
  Column<uint32_t> depth;  // 1 without a dominator
};

ObjectGraph StrongReferences(const ImportedTrace& trace, const ImportedHeapGraph& graph) {
  const HeapGraphTables& tables = trace.heap_graph;
  ObjectGraph result(graph.object_count);
  result.AddType("");  // types are not asked for
  for (uint32_t i = 0; i < graph.object_count; ++i) {
    const uint32_t owner = graph.first_object + i;
    if (tables.objects.root_type[owner] != HeapRootType::kNone)
      result.AddRoot(i, 0);
    const uint32_t first = tables.objects.first_reference[owner];
    const uint32_t count = first == kNoId ? 0 : tables.objects.reference_count[owner];
    for (uint32_t at = 0; at < count; ++at) {
      const uint32_t owned = tables.references.owned[first + at];
      if (owned != kNoId && owned >= graph.first_object &&
          owned - graph.first_object < graph.object_count &&
          !IsWeakReference(trace, owner, first + at))
        result.AddReference(owned - graph.first_object);
    }
    result.EndReferences(i);
  }
  return result;
}

void AddGraph(const ImportedTrace& trace,
              const ImportedHeapGraph& graph,
              const DominatorTree& dominators,
              HeapDominators* tree) {
  struct Dominated {
    int64_t count = 0;
    int64_t size = 0;
    int64_t native_size = 0;
    uint32_t depth = 0;
  };

  const HeapObjectTable& objects = trace.heap_graph.objects;
  std::vector<Dominated> nodes(graph.object_count);
  Dominated all;
  const auto above = [&](uint32_t node) -> Dominated& {
    const uint32_t dominator = dominators.dominator[node];
    return dominator == kHeldByRoots ? all : nodes[dominator];
  };
  for (const uint32_t node : dominators.order)
    nodes[node].depth = above(node).depth + 1;
  for (size_t i = dominators.order.size(); i-- > 0;) {
    const uint32_t object = graph.first_object + dominators.order[i];
    Dominated& node = nodes[dominators.order[i]];
    node.count = Sum(node.count, 1);
    node.size = Sum(node.size, objects.self_size[object]);
    node.native_size = Sum(node.native_size, objects.native_size[object]);
    Dominated& holder = above(dominators.order[i]);
    holder.count = Sum(holder.count, node.count);
    holder.size = Sum(holder.size, node.size);
    holder.native_size = Sum(holder.native_size, node.native_size);
  }
  for (uint32_t node = 0; node < graph.object_count; ++node) {
    const uint32_t dominator = dominators.dominator[node];
    if (dominator == kUnreachable)
      continue;
    tree->object.push_back(graph.first_object + node);
    tree->dominator.push_back(dominator == kHeldByRoots ? kNoId
                                                        : graph.first_object + dominator);
    tree->count.push_back(nodes[node].count);
    tree->size.push_back(nodes[node].size);
    tree->native_size.push_back(nodes[node].native_size);
    tree->depth.push_back(nodes[node].depth);
  }
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
    HeapDominators tree;
    for (const ImportedHeapGraph& graph : trace.heap_graph.graphs) {
      HPD_TRY_ASSIGN(
          const DominatorTree dominators,
          FindDominators(StrongReferences(trace, graph), database->cancel_flag()));
      AddGraph(trace, graph, dominators, &tree);
    }
    return std::make_shared<const Table>(DominatorTable(std::move(tree)));
  };
  return database->AddFunction(std::move(function));
}

// The values of fields and arrays. Only HPROF files have them, of which they are not
// read: an empty table would say that there are none.
Status AddValueTable(std::string name,
                     std::initializer_list<std::pair<const char*, ColumnType>> columns,
                     Database* database) {
  TableFunction function;
  function.name = std::move(name);
  for (const auto& [column, type] : columns)
    function.columns.push_back({.name = column, .type = type});
  function.make = [name = function.name](std::span<const Cell>) -> MadeTable {
    return Status(StatusCode::kNotFound,
                  "cannot read " + name +
                      ": the values of fields and arrays are not read, and traces do "
                      "not record them; heap_graph_object and heap_graph_reference "
                      "have what there is");
  };
  return database->AddFunction(std::move(function));
}

Status AddValueTables(Database* database) {
  using enum ColumnType;
  HPD_TRY(AddValueTable("heap_graph_object_data",
                        {{"id", kInteger},
                         {"field_set_id", kInteger},
                         {"value_string", kText},
                         {"array_element_type", kText},
                         {"array_element_count", kInteger},
                         {"array_data_id", kInteger},
                         {"array_data_hash", kInteger}},
                        database));
  return AddValueTable("heap_graph_primitive",
                       {{"id", kInteger},
                        {"field_set_id", kInteger},
                        {"field_name", kText},
                        {"field_type", kText},
                        {"bool_value", kInteger},
                        {"byte_value", kInteger},
                        {"char_value", kInteger},
                        {"short_value", kInteger},
                        {"int_value", kInteger},
                        {"long_value", kInteger},
                        {"float_value", kReal},
                        {"double_value", kReal}},
                       database);
}

}  // namespace

Status AddHeapGraphFunctions(const ImportedTrace& trace, Database* database) {
  HPD_TRY(AddClassTree(trace, database));
  HPD_TRY(AddValueTables(database));
  return AddDominatorTree(trace, database);
}

}  // namespace heapprofd
