// Perfetto's functions over heap profiles. The packed values of the macros' functions are
// made by an aggregate of ours, but a query can pass any bytes: they are checked.
#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "query/flame_functions.h"
#include "query/graph_tree.h"
#include "query/sum.h"
#include "query/tree_tables.h"

namespace heapprofd {
namespace {

constexpr size_t kMapName = 4;  // column of experimental_flamegraph

struct FlamegraphArguments {
  std::string_view profile_type;
  int64_t ts = INT64_MAX;
  std::vector<uint32_t> upids;  // empty: all
  std::string_view focus;
};

Status Unusable(const std::string& why) {
  return Status(StatusCode::kInvalidArgument, "cannot build a flamegraph: " + why);
}

void AddUpids(const Cell& upid, const Cell& group, std::vector<uint32_t>* upids) {
  if (upid.kind == CellKind::kInteger)
    upids->push_back(static_cast<uint32_t>(upid.integer));
  if (group.kind != CellKind::kText)
    return;
  std::string_view rest = group.text;
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    upids->push_back(static_cast<uint32_t>(
        strtoul(std::string(rest.substr(0, comma)).c_str(), nullptr, 10)));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
}

// Both forms: (type, ts, ts_constraint, upid, upid_group, focus) and the older
// (ts, upid, type [, focus]).
Result<FlamegraphArguments> ParseArguments(std::span<const Cell> cells) {
  const bool is_old_form =
      cells[0].kind != CellKind::kText && cells[2].kind == CellKind::kText;
  FlamegraphArguments arguments;
  const Cell& type = is_old_form ? cells[2] : cells[0];
  const Cell& ts = is_old_form ? cells[0] : cells[1];
  const Cell& focus = is_old_form ? cells[3] : cells[5];
  if (type.kind != CellKind::kText)
    return Unusable(
        "no profile type is given; use experimental_flamegraph('native', TS, NULL, UPID, "
        "NULL, NULL) or experimental_flamegraph(TS, UPID, 'native')");
  arguments.profile_type = type.text;
  if (ts.kind == CellKind::kInteger)
    arguments.ts = ts.integer;
  if (is_old_form)
    AddUpids(cells[1], Cell::Null(), &arguments.upids);
  else
    AddUpids(cells[3], cells[4], &arguments.upids);
  if (focus.kind == CellKind::kText)
    arguments.focus = focus.text;
  return arguments;
}

ValuesByCallsite SumOf(const ImportedTrace& trace, const FlamegraphArguments& arguments) {
  DumpSelection selection;
  selection.ts = arguments.ts;
  if (arguments.upids.empty())
    return SumAllocations(trace, selection);
  ValuesByCallsite sum(trace.callsites.row_count());
  for (const uint32_t upid : arguments.upids) {
    selection.upid = upid;
    AddAllocations(trace, selection, &sum);
  }
  return sum;
}

Table FlamegraphTable(const ImportedTrace& trace, FlameTree made, int64_t ts) {
  constexpr NamedFigure kFigures[] = {
      {"count", "cumulative_count", &FlameValues::count},
      {"size", "cumulative_size", &FlameValues::size},
      {"alloc_count", "cumulative_alloc_count", &FlameValues::alloc_count},
      {"alloc_size", "cumulative_alloc_size", &FlameValues::alloc_size},
  };
  return TreeTable(std::move(made), [&trace, ts, &kFigures](const FlameTree& tree) {
    std::vector<TableColumn> columns = {
        NodeId(tree), NumberColumn("ts", [ts](size_t) { return ts; }), NodeDepth(tree),
        NodeName(tree), NodeMapping("map_name", trace, tree)};
    AddFigures(tree, kFigures, &columns);
    columns.push_back(NodeParent(tree));
    columns.push_back(NodeSourceFile(trace, tree));
    columns.push_back(NodeLine(tree));
    return columns;
  });
}

Result<FlameTree> NativeTree(const ImportedTrace& trace,
                             const FlamegraphArguments& arguments,
                             const CancelFlag& cancelled) {
  HPD_TRY_ASSIGN(FlameTree tree,
                 BuildFlameTree(trace, SumOf(trace, arguments),
                                {NameStyle::kAsRecorded, Merging::kByName}, cancelled));
  if (tree.nodes.empty())
    return Unusable(
        "there are no allocations of this process up to this time; SELECT DISTINCT ts, "
        "upid FROM heap_profile_allocation lists those there are");
  return tree;
}

// In the place of a graph without roots, whose packets did not all arrive; Perfetto's
// words, which its users look for.
FlameTree IncompleteGraph() {
  auto names = std::make_shared<StringPool>();
  FlameTree tree;
  FlameNode node;
  node.function = tree.functions.Intern(
      {.name = names->Intern("ERROR: INCOMPLETE GRAPH (try increasing buffer size)")});
  tree.AddSelf(tree.AddNode(node), FlameValues{1, 1, 0, 0});
  AddCumulative(&tree);
  tree.names = std::move(names);
  return tree;
}

// Graphs are snapshots: the time must be that of one.
Result<FlameTree> JavaTree(const ImportedTrace& trace,
                           const FlamegraphArguments& arguments,
                           const CancelFlag& cancelled) {
  const std::vector<ImportedHeapGraph>& graphs = trace.heap_graph.graphs;
  for (uint32_t graph = 0; graph < graphs.size(); ++graph) {
    if (graphs[graph].ts == arguments.ts && !arguments.upids.empty() &&
        graphs[graph].upid == arguments.upids[0]) {
      HPD_TRY_ASSIGN(GraphTree made, BuildGraphTree(trace, {&graph, 1}, {}, cancelled));
      return made.tree.nodes.empty() && graphs[graph].truncated ? IncompleteGraph()
                                                                : std::move(made.tree);
    }
  }
  return Unusable(
      "the trace has no heap graph of this process at this time; SELECT * FROM "
      "heap_graph lists those it has");
}

MadeTable MakeFlamegraph(const ImportedTrace& trace,
                         const CancelFlag& cancelled,
                         std::span<const Cell> cells) {
  HPD_TRY_ASSIGN(const FlamegraphArguments arguments, ParseArguments(cells));
  const bool is_graph = arguments.profile_type == "graph";
  if (!is_graph && arguments.profile_type != "native")
    return Unusable("the profile type " + std::string(arguments.profile_type) +
                    " is not known; 'native' and 'graph' are");
  HPD_TRY_ASSIGN(FlameTree tree, is_graph ? JavaTree(trace, arguments, cancelled)
                                          : NativeTree(trace, arguments, cancelled));
  if (!arguments.focus.empty())
    tree = Focus(std::move(tree), arguments.focus);
  const int64_t ts = arguments.ts == INT64_MAX ? 0 : arguments.ts;
  Table table = FlamegraphTable(trace, std::move(tree), ts);
  if (is_graph)
    table.columns[kMapName] = LiteralColumn("map_name", [](size_t) { return "JAVA"; });
  return std::make_shared<const Table>(std::move(table));
}

Status AddExperimentalFlamegraph(const ImportedTrace& trace, Database* database) {
  TableFunction function =
      FunctionWithColumnsOf("experimental_flamegraph", FlamegraphTable(trace, {}, 0));
  function.parameters = {
      {"profile_type", ColumnType::kText, false},
      {"ts_in", ColumnType::kInteger, false},
      {"ts_constraint", ColumnType::kText, false},
      {"upid", ColumnType::kInteger, false},
      {"upid_group", ColumnType::kText, false},
      {"focus_str", ColumnType::kText, false},
  };
  function.make = [&trace, database](std::span<const Cell> cells) {
    return MakeFlamegraph(trace, database->cancel_flag(), cells);
  };
  return database->AddFunction(std::move(function));
}

// --- trees of callsites, one node per function of each callsite

Table CallstackTable(const ImportedTrace& trace, FlameTree made) {
  constexpr NamedFigure kFigures[] = {
      {"self_size", "cumulative_size", &FlameValues::size},
      {"self_count", "cumulative_count", &FlameValues::count},
      {"self_alloc_size", "cumulative_alloc_size", &FlameValues::alloc_size},
      {"self_alloc_count", "cumulative_alloc_count", &FlameValues::alloc_count},
  };
  return TreeTable(std::move(made), [&trace, &kFigures](const FlameTree& tree) {
    std::vector<TableColumn> columns = {
        NodeId(tree),
        NodeParent(tree),
        IdColumn("callsite_id",
                 [&tree](size_t row) { return tree.unmerged[row].callsite; }),
        NodeName(tree),
        NodeMapping("mapping_name", trace, tree),
        NodeSourceFile(trace, tree),
        NodeLine(tree),
        NumberColumn("inlined",
                     [&tree](size_t row) { return tree.unmerged[row].is_inlined; }),
        NumberColumn("is_leaf_function_in_callsite_frame",
                     [&tree](size_t row) { return tree.unmerged[row].is_leaf_function; }),
    };
    AddFigures(tree, kFigures, &columns);
    return columns;
  });
}

std::vector<int64_t> Unpack(std::string_view bytes) {
  std::vector<int64_t> values(bytes.size() / sizeof(int64_t));
  if (!values.empty())
    memcpy(values.data(), bytes.data(), values.size() * sizeof(int64_t));
  return values;
}

MadeTable MakeCallstacks(const ImportedTrace& trace,
                         const CancelFlag& cancelled,
                         ValuesByCallsite values) {
  HPD_TRY_ASSIGN(FlameTree tree,
                 BuildFlameTree(trace, std::move(values),
                                {NameStyle::kDemangled, Merging::kNone}, cancelled));
  return std::make_shared<const Table>(CallstackTable(trace, std::move(tree)));
}

// Rows of five: callsite, size, count, alloc_size, alloc_count.
Status AddCallstackFunction(const ImportedTrace& trace, Database* database) {
  TableFunction function =
      FunctionWithColumnsOf("__hpd_callstacks", CallstackTable(trace, {}));
  function.parameters = {{"packed", ColumnType::kText}};
  function.make = [&trace, database](std::span<const Cell> cells) {
    ValuesByCallsite values(trace.callsites.row_count());
    const std::vector<int64_t> packed = Unpack(cells[0].text);
    for (size_t i = 0; i + 5 <= packed.size(); i += 5) {
      if (packed[i] >= 0 && static_cast<uint64_t>(packed[i]) < values.size())
        values.At(static_cast<size_t>(packed[i])) +=
            FlameValues{packed[i + 2], packed[i + 1], packed[i + 4], packed[i + 3]};
    }
    return MakeCallstacks(trace, database->cancel_flag(), std::move(values));
  };
  HPD_TRY(database->AddPackingAggregate("__hpd_pack", 5));
  return database->AddFunction(std::move(function));
}

Status AddSummaryTree(const ImportedTrace& trace, Database* database) {
  TableFunction function =
      FunctionWithColumnsOf("__hpd_summary_tree", CallstackTable(trace, {}));
  function.make = [&trace, database](std::span<const Cell>) {
    return MakeCallstacks(trace, database->cancel_flag(), SumAllocations(trace, {}));
  };
  HPD_TRY(database->AddFunction(std::move(function)));
  return database->AddView("android_heap_profile_summary_tree",
                           "SELECT id, parent_id, name, mapping_name, source_file, "
                           "line_number, self_size, cumulative_size, self_alloc_size, "
                           "cumulative_alloc_size FROM __hpd_summary_tree");
}

// --- sums over a tree that a query made

struct SummedTree {
  std::vector<int64_t> ids;
  std::vector<int64_t> sums;
};

// Rows of three: id, parent (or -1), value. Parents need not come first; what is part of
// a cycle adds to nothing.
SummedTree SumTree(const std::vector<int64_t>& packed) {
  SummedTree tree;
  std::unordered_map<int64_t, size_t> rows;
  std::vector<int64_t> parents;
  for (size_t i = 0; i + 3 <= packed.size(); i += 3) {
    if (!rows.try_emplace(packed[i], tree.ids.size()).second)
      continue;
    tree.ids.push_back(packed[i]);
    parents.push_back(packed[i + 1]);
    tree.sums.push_back(packed[i + 2]);
  }
  std::vector<size_t> parent_rows(parents.size(), SIZE_MAX);
  std::vector<uint32_t> open_children(parents.size(), 0);
  for (size_t row = 0; row < parents.size(); ++row) {
    const auto parent = rows.find(parents[row]);
    if (parent == rows.end())
      continue;
    parent_rows[row] = parent->second;
    ++open_children[parent->second];
  }
  std::vector<size_t> ready;
  for (size_t row = 0; row < parents.size(); ++row) {
    if (open_children[row] == 0)
      ready.push_back(row);
  }
  while (!ready.empty()) {
    const size_t row = ready.back();
    ready.pop_back();
    const size_t parent = parent_rows[row];
    if (parent == SIZE_MAX)
      continue;
    tree.sums[parent] = Sum(tree.sums[parent], tree.sums[row]);
    if (--open_children[parent] == 0)
      ready.push_back(parent);
  }
  return tree;
}

Table SummedTreeTable(SummedTree made) {
  auto storage = std::make_shared<SummedTree>(std::move(made));
  Table table;
  table.storage = storage;
  table.row_count = storage->ids.size();
  table.columns = {TableColumn::Integers("id", storage->ids),
                   TableColumn::Integers("cumulative_count", storage->sums)};
  return table;
}

Status AddTreeSum(Database* database) {
  TableFunction function = FunctionWithColumnsOf("__hpd_tree_sum", SummedTreeTable({}));
  function.parameters = {{"packed", ColumnType::kText}};
  function.make = [](std::span<const Cell> cells) -> MadeTable {
    return std::make_shared<const Table>(SummedTreeTable(SumTree(Unpack(cells[0].text))));
  };
  HPD_TRY(database->AddPackingAggregate("__hpd_pack", 3));
  return database->AddFunction(std::move(function));
}

}  // namespace

Status AddPerfettoFunctions(const ImportedTrace& trace, Database* database) {
  HPD_TRY(AddExperimentalFlamegraph(trace, database));
  HPD_TRY(AddCallstackFunction(trace, database));
  HPD_TRY(AddSummaryTree(trace, database));
  HPD_TRY(AddHeapGraphFunctions(trace, database));
  return AddTreeSum(database);
}

}  // namespace heapprofd
