// flamegraph(dump, view) and diff(dump_a, dump_b, view). Dumps are rows of heap_dump;
// names are demangled.
#include <cmath>

#include "query/allocators.h"
#include "query/dump_values.h"
#include "query/flame_functions.h"
#include "query/sum.h"
#include "query/tree_tables.h"

namespace heapprofd {
namespace {

// Standard errors of the tree's cumulative values; NULL when the trace does not tell.
TableColumn CumulativeError(const char* name, const FlameTree& tree) {
  return TableColumn::Computed(name, ColumnType::kReal, [&tree](size_t row) {
    return tree.variances.empty() ? Cell::Null()
                                  : Cell::Real(std::sqrt(tree.VarianceOf(row)));
  });
}

// What both tables begin with.
std::vector<TableColumn> NodeColumns(const ImportedTrace& trace, const FlameTree& tree) {
  return {NodeId(tree),
          NodeParent(tree),
          NodeDepth(tree),
          NodeName(tree),
          NodeMapping("mapping_name", trace, tree),
          NodeSourceFile(trace, tree),
          NodeLine(tree)};
}

Table FlamegraphTable(const ImportedTrace& trace, FlameTree made, ProfileView view) {
  return TreeTable(std::move(made), [&trace, view](const FlameTree& tree) {
    std::vector<TableColumn> columns = NodeColumns(trace, tree);
    columns.push_back(NodeSelf("self", tree, FigureOf(view)));
    columns.push_back(NodeCumulative("cumulative", tree, FigureOf(view)));
    columns.push_back(CumulativeError("cumulative_error", tree));
    return columns;
  });
}

Status AddFlamegraph(const ImportedTrace& trace, Database* database) {
  TableFunction function = FunctionWithColumnsOf(
      "flamegraph", FlamegraphTable(trace, {}, ProfileView::kLiveSize));
  function.parameters = {{"dump"}, {"view", ColumnType::kText, false}};
  function.make = [&trace, database](std::span<const Cell> cells) -> MadeTable {
    HPD_TRY_ASSIGN(const uint32_t dump, DumpOf(trace, cells[0]));
    HPD_TRY_ASSIGN(const ProfileView view, ViewOf(cells[1]));
    HPD_TRY(CheckTold(trace, dump, view));
    ValuesByCallsite values = ValuesAt(trace, dump);
    AddVariances(trace, dump, view, &values);
    MoveToCallers(trace, &values);
    HPD_TRY_ASSIGN(FlameTree tree,
                   BuildFlameTree(trace, std::move(values), {}, database->cancel_flag()));
    return std::make_shared<const Table>(FlamegraphTable(trace, std::move(tree), view));
  };
  return database->AddFunction(std::move(function));
}

// One tree for both: a's value goes where the size is, b's where the count is. Variances
// are known only when both are.
ValuesByCallsite Paired(const ValuesByCallsite& a,
                        const ValuesByCallsite& b,
                        ProfileView view) {
  const auto figure = FigureOf(view);
  const bool has_variances = a.has_variances() && b.has_variances();
  ValuesByCallsite pairs(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    const FlameValues pair{.count = b[i].*figure, .size = a[i].*figure};
    if (!pair.IsZero())
      pairs.At(i) = pair;
    const double variance = a.VarianceOf(i) + b.VarianceOf(i);
    if (has_variances && (variance != 0 || !pair.IsZero()))
      pairs.AddVariance(i, variance);
  }
  return pairs;
}

Table DiffTable(const ImportedTrace& trace, FlameTree made) {
  const auto delta = [](const FlameValues& values) {
    return Sum(values.count, values.size == INT64_MIN ? INT64_MAX : -values.size);
  };
  return TreeTable(std::move(made), [&trace, delta](const FlameTree& tree) {
    std::vector<TableColumn> columns = NodeColumns(trace, tree);
    columns.push_back(NodeSelf("self_a", tree, &FlameValues::size));
    columns.push_back(NodeSelf("self_b", tree, &FlameValues::count));
    columns.push_back(NumberColumn(
        "self_delta", [&tree, delta](size_t row) { return delta(tree.SelfOf(row)); }));
    columns.push_back(NodeCumulative("cumulative_a", tree, &FlameValues::size));
    columns.push_back(NodeCumulative("cumulative_b", tree, &FlameValues::count));
    columns.push_back(NumberColumn("cumulative_delta", [&tree, delta](size_t row) {
      return delta(tree.CumulativeOf(row));
    }));
    columns.push_back(CumulativeError("cumulative_delta_error", tree));
    return columns;
  });
}

Status AddDiff(const ImportedTrace& trace, Database* database) {
  TableFunction function = FunctionWithColumnsOf("diff", DiffTable(trace, {}));
  function.parameters = {{"dump_a"}, {"dump_b"}, {"view", ColumnType::kText, false}};
  function.make = [&trace, database](std::span<const Cell> cells) -> MadeTable {
    HPD_TRY_ASSIGN(const uint32_t a, DumpOf(trace, cells[0]));
    HPD_TRY_ASSIGN(const uint32_t b, DumpOf(trace, cells[1]));
    HPD_TRY_ASSIGN(const ProfileView view, ViewOf(cells[2]));
    HPD_TRY(CheckTold(trace, a, view));
    HPD_TRY(CheckTold(trace, b, view));
    ValuesByCallsite values_a = ValuesAt(trace, a);
    ValuesByCallsite values_b = ValuesAt(trace, b);
    AddVariances(trace, a, view, &values_a);
    AddVariances(trace, b, view, &values_b);
    MoveToCallers(trace, &values_a);
    MoveToCallers(trace, &values_b);
    HPD_TRY_ASSIGN(FlameTree tree, BuildFlameTree(trace, Paired(values_a, values_b, view),
                                                  {}, database->cancel_flag()));
    return std::make_shared<const Table>(DiffTable(trace, std::move(tree)));
  };
  return database->AddFunction(std::move(function));
}

}  // namespace

Status AddOwnFunctions(const ImportedTrace& trace, Database* database) {
  HPD_TRY(AddFlamegraph(trace, database));
  HPD_TRY(AddDiff(trace, database));
  HPD_TRY(AddGrowth(trace, database));
  return AddSummingFunctions(trace, database);
}

}  // namespace heapprofd
