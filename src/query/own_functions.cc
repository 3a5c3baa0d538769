// flamegraph(dump, view), diff(dump_a, dump_b, view), callers(name, dump) and
// top(view, n, dump). Dumps are rows of heap_dump; names are demangled.
#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "query/flame_functions.h"
#include "query/node_columns.h"
#include "query/profile_view.h"
#include "query/sum.h"
#include "symbolize/demangle.h"

namespace heapprofd {
namespace {

using MadeTable = Result<std::shared_ptr<const Table>>;

Status Invalid(const std::string& message) {
  return Status(StatusCode::kInvalidArgument, message);
}

Result<uint32_t> DumpOf(const ImportedTrace& trace, const Cell& cell) {
  if (cell.kind == CellKind::kInteger && cell.integer >= 0 &&
      static_cast<uint64_t>(cell.integer) < trace.dumps.size())
    return static_cast<uint32_t>(cell.integer);
  return Invalid("cannot find dump " +
                 (cell.kind == CellKind::kInteger ? std::to_string(cell.integer)
                                                  : std::string("(no number)")) +
                 ": the trace has " + std::to_string(trace.dumps.size()) +
                 " dumps; SELECT id, ts, upid, heap_name FROM heap_dump lists them");
}

// NULL stands for space.
Result<ProfileView> ViewOf(const Cell& cell) {
  if (cell.is_null())
    return ProfileView::kLiveSize;
  const std::optional<ProfileView> view = ParseView(cell.text);
  if (view)
    return *view;
  return Invalid("cannot find view " + std::string(cell.text) + ": the views are " +
                 kViewNames);
}

double ErrorOf(const EstimateTable& estimates, size_t row, ProfileView view) {
  switch (view) {
    case ProfileView::kLiveSize:
      return estimates.live_bytes_error[row];
    case ProfileView::kLiveCount:
      return estimates.live_count_error[row];
    case ProfileView::kAllocSize:
      return estimates.allocated_bytes_error[row];
    case ProfileView::kAllocCount:
      return estimates.alloc_count_error[row];
  }
  return 0;
}

// The heap of one dump, from its beginning up to the dump.
ValuesByCallsite ValuesAt(const ImportedTrace& trace, uint32_t id, ProfileView view) {
  const ImportedDump& dump = trace.dumps[id];
  ValuesByCallsite values = SumAllocations(trace, {dump.upid, dump.heap_name, dump.ts});
  for (size_t i = 0; i < dump.estimate_count; ++i) {
    const size_t row = dump.first_estimate + i;
    const double error = ErrorOf(trace.estimates, row, view);
    values[trace.estimates.callsite[row]].variance += error * error;
  }
  return values;
}

struct ViewTree {
  FlameTree tree;
  ProfileView view = ProfileView::kLiveSize;
  bool has_errors = false;
};

// The square root of a variance, when the trace tells it.
Cell ErrorCell(double variance, bool is_known) {
  return is_known ? Cell::Real(std::sqrt(variance)) : Cell::Null();
}

// Standard errors of the tree's cumulative values.
template <typename TreeOfView>
TableColumn CumulativeError(const char* name, const TreeOfView& at) {
  return TableColumn::Computed(name, ColumnType::kReal, [&at](size_t row) {
    return ErrorCell(at.tree.nodes[row].cumulative.variance, at.has_errors);
  });
}

Table FlamegraphTable(const ImportedTrace& trace, ViewTree made) {
  auto storage = std::make_shared<ViewTree>(std::move(made));
  const ViewTree& at = *storage;
  const FlameTree& tree = at.tree;
  Table table;
  table.storage = storage;
  table.row_count = tree.nodes.size();
  table.columns = {
      NodeId("id", tree),
      NodeParent(tree),
      NumberColumn("depth", [&tree](size_t row) { return tree.nodes[row].depth; }),
      NodeName(tree),
      NodeMapping("mapping_name", trace, tree),
      NodeSourceFile(trace, tree),
      NodeLine(tree),
      NumberColumn(
          "self",
          [&at](size_t row) { return ValueOf(at.tree.nodes[row].self, at.view); }),
      NumberColumn(
          "cumulative",
          [&at](size_t row) { return ValueOf(at.tree.nodes[row].cumulative, at.view); }),
      CumulativeError("cumulative_error", at),
  };
  return table;
}

Status AddFlamegraph(const ImportedTrace& trace, Database* database) {
  TableFunction function;
  function.name = "flamegraph";
  function.columns = SpecOf(FlamegraphTable(trace, {}));
  function.parameters = {{"dump"}, {"view", ColumnType::kText, false}};
  function.make = [&trace, database](std::span<const Cell> cells) -> MadeTable {
    HPD_TRY_ASSIGN(const uint32_t dump, DumpOf(trace, cells[0]));
    HPD_TRY_ASSIGN(const ProfileView view, ViewOf(cells[1]));
    HPD_TRY_ASSIGN(FlameTree tree, BuildFlameTree(trace, ValuesAt(trace, dump, view), {},
                                                  database->cancel_flag()));
    return std::make_shared<const Table>(FlamegraphTable(
        trace, {std::move(tree), view, trace.dumps[dump].estimate_count > 0}));
  };
  return database->AddFunction(std::move(function));
}

// --- diff

struct DiffTree {
  FlameTree tree;  // size: the view's value in a; count: in b
  bool has_errors = false;
};

// One tree for both: a's value goes where the size is, b's where the count is.
ValuesByCallsite Paired(const ValuesByCallsite& a,
                        const ValuesByCallsite& b,
                        ProfileView view) {
  ValuesByCallsite pairs(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    pairs[i].size = ValueOf(a[i], view);
    pairs[i].count = ValueOf(b[i], view);
    pairs[i].variance = a[i].variance + b[i].variance;
  }
  return pairs;
}

Table DiffTable(const ImportedTrace& trace, DiffTree made) {
  auto storage = std::make_shared<DiffTree>(std::move(made));
  const DiffTree& at = *storage;
  const FlameTree& tree = at.tree;
  const auto delta = [](const FlameValues& values) {
    return Sum(values.count, values.size == INT64_MIN ? INT64_MAX : -values.size);
  };
  Table table;
  table.storage = storage;
  table.row_count = tree.nodes.size();
  table.columns = {
      NodeId("id", tree),
      NodeParent(tree),
      NumberColumn("depth", [&tree](size_t row) { return tree.nodes[row].depth; }),
      NodeName(tree),
      NodeMapping("mapping_name", trace, tree),
      NodeSourceFile(trace, tree),
      NodeLine(tree),
      NodeSelf("self_a", tree, &FlameValues::size),
      NodeSelf("self_b", tree, &FlameValues::count),
      NumberColumn("self_delta",
                   [&tree, delta](size_t row) { return delta(tree.nodes[row].self); }),
      NodeCumulative("cumulative_a", tree, &FlameValues::size),
      NodeCumulative("cumulative_b", tree, &FlameValues::count),
      NumberColumn(
          "cumulative_delta",
          [&tree, delta](size_t row) { return delta(tree.nodes[row].cumulative); }),
      CumulativeError("cumulative_delta_error", at),
  };
  return table;
}

Status AddDiff(const ImportedTrace& trace, Database* database) {
  TableFunction function;
  function.name = "diff";
  function.columns = SpecOf(DiffTable(trace, {}));
  function.parameters = {{"dump_a"}, {"dump_b"}, {"view", ColumnType::kText, false}};
  function.make = [&trace, database](std::span<const Cell> cells) -> MadeTable {
    HPD_TRY_ASSIGN(const uint32_t a, DumpOf(trace, cells[0]));
    HPD_TRY_ASSIGN(const uint32_t b, DumpOf(trace, cells[1]));
    HPD_TRY_ASSIGN(const ProfileView view, ViewOf(cells[2]));
    HPD_TRY_ASSIGN(FlameTree tree, BuildFlameTree(trace,
                                                  Paired(ValuesAt(trace, a, view),
                                                         ValuesAt(trace, b, view), view),
                                                  {}, database->cancel_flag()));
    const bool has_errors =
        trace.dumps[a].estimate_count > 0 && trace.dumps[b].estimate_count > 0;
    return std::make_shared<const Table>(DiffTable(trace, {std::move(tree), has_errors}));
  };
  return database->AddFunction(std::move(function));
}

// --- callers and top: sums per function

struct FunctionSum {
  std::string_view name;
  StringId mapping_name = kEmptyString;
  FlameValues self;
  FlameValues cumulative;
};

struct FunctionSums {
  FlameTree tree;  // owns the names
  std::vector<FunctionSum> rows;
  ProfileView view = ProfileView::kLiveSize;
};

// One dump, or everything in the trace.
Result<ValuesByCallsite> ValuesOf(const ImportedTrace& trace, const Cell& dump) {
  if (dump.is_null())
    return SumAllocations(trace, {});
  HPD_TRY_ASSIGN(const uint32_t id, DumpOf(trace, dump));
  return ValuesAt(trace, id, ProfileView::kLiveSize);
}

// Functions of one name in two files are two.
using FunctionKey = std::pair<std::string_view, StringId>;

FunctionSum& RowOf(std::map<FunctionKey, size_t>& rows,
                   FunctionSums& sums,
                   FunctionKey key) {
  const auto [row, is_new] = rows.try_emplace(key, sums.rows.size());
  if (is_new)
    sums.rows.push_back({key.first, key.second, {}, {}});
  return sums.rows[row->second];
}

// True when the node of a function or any above it is the same function: recursion, whose
// memory the outermost call has counted already.
template <typename IsSame>
bool IsBelowSame(const FlameTree& tree, uint32_t row, IsSame is_same) {
  for (uint32_t at = tree.nodes[row].parent; at != kNoId; at = tree.nodes[at].parent) {
    if (is_same(at))
      return true;
  }
  return false;
}

void SumFunctions(FunctionSums* sums) {
  std::map<FunctionKey, size_t> rows;
  const FlameTree& tree = sums->tree;
  for (uint32_t row = 0; row < tree.nodes.size(); ++row) {
    const FlameNode& node = tree.nodes[row];
    FunctionSum& sum = RowOf(rows, *sums, {node.name, node.mapping_name});
    sum.self += node.self;
    // Names are interned: one name, one place.
    if (!IsBelowSame(tree, row, [&](uint32_t at) {
          return tree.nodes[at].name.data() == node.name.data() &&
                 tree.nodes[at].mapping_name == node.mapping_name;
        }))
      sum.cumulative += node.cumulative;
  }
}

Table TopTable(const ImportedTrace& trace, FunctionSums made) {
  auto storage = std::make_shared<FunctionSums>(std::move(made));
  const FunctionSums& at = *storage;
  Table table;
  table.storage = storage;
  table.row_count = at.rows.size();
  table.columns = {
      TableColumn::RowNumber("id"),
      TableColumn::Computed("name", ColumnType::kText,
                            [&at](size_t row) { return Cell::Text(at.rows[row].name); }),
      TextColumn("mapping_name", trace,
                 [&at](size_t row) { return at.rows[row].mapping_name; }),
      NumberColumn("self",
                   [&at](size_t row) { return ValueOf(at.rows[row].self, at.view); }),
      NumberColumn(
          "cumulative",
          [&at](size_t row) { return ValueOf(at.rows[row].cumulative, at.view); }),
  };
  return table;
}

Status AddTop(const ImportedTrace& trace, Database* database) {
  TableFunction function;
  function.name = "top";
  function.columns = SpecOf(TopTable(trace, {}));
  function.parameters = {{"view", ColumnType::kText, false},
                         {"n", ColumnType::kInteger, false},
                         {"dump", ColumnType::kInteger, false}};
  function.make = [&trace, database](std::span<const Cell> cells) -> MadeTable {
    FunctionSums sums;
    HPD_TRY_ASSIGN(sums.view, ViewOf(cells[0]));
    HPD_TRY_ASSIGN(const ValuesByCallsite values, ValuesOf(trace, cells[2]));
    HPD_TRY_ASSIGN(sums.tree, BuildFlameTree(trace, values, {}, database->cancel_flag()));
    SumFunctions(&sums);
    std::stable_sort(sums.rows.begin(), sums.rows.end(),
                     [&](const FunctionSum& a, const FunctionSum& b) {
                       return ValueOf(a.self, sums.view) > ValueOf(b.self, sums.view);
                     });
    if (cells[1].kind == CellKind::kInteger && cells[1].integer >= 0 &&
        static_cast<uint64_t>(cells[1].integer) < sums.rows.size())
      sums.rows.resize(static_cast<size_t>(cells[1].integer));
    return std::make_shared<const Table>(TopTable(trace, std::move(sums)));
  };
  return database->AddFunction(std::move(function));
}

Table CallersTable(const ImportedTrace& trace, FunctionSums made) {
  auto storage = std::make_shared<FunctionSums>(std::move(made));
  const FunctionSums& at = *storage;
  const auto figure = [&at](std::string_view name, FlameFigure value) {
    return NumberColumn(
        name, [&at, value](size_t row) { return at.rows[row].cumulative.*value; });
  };
  Table table;
  table.storage = storage;
  table.row_count = at.rows.size();
  table.columns = {
      TableColumn::RowNumber("id"),
      TableColumn::Computed("name", ColumnType::kText,
                            [&at](size_t row) {
                              const std::string_view name = at.rows[row].name;
                              return name.data() == nullptr ? Cell::Null()
                                                            : Cell::Text(name);
                            }),
      TextColumn("mapping_name", trace,
                 [&at](size_t row) { return at.rows[row].mapping_name; }),
      figure("count", &FlameValues::count),
      figure("size", &FlameValues::size),
      figure("alloc_count", &FlameValues::alloc_count),
      figure("alloc_size", &FlameValues::alloc_size),
  };
  return table;
}

// Whether a function is the one that was asked for: by its whole name, or by its name
// without parameters and template arguments.
class NameMatcher {
 public:
  explicit NameMatcher(std::string_view wanted)
      : wanted_(wanted), demangled_(Demangle(wanted)) {}

  bool Matches(std::string_view name) {
    const auto [known, is_new] = known_.try_emplace(name.data(), false);
    if (is_new)
      known->second = name == wanted_ || name == demangled_ ||
                      name.substr(0, name.find('(')) == wanted_;
    return known->second;
  }

 private:
  std::string wanted_;
  std::string demangled_;
  std::unordered_map<const char*, bool> known_;
};

void SumCallers(NameMatcher& matcher, FunctionSums* sums) {
  std::map<FunctionKey, size_t> rows;
  const FlameTree& tree = sums->tree;
  const auto caller_of = [&](uint32_t row) {
    const uint32_t parent = tree.nodes[row].parent;
    return parent == kNoId
               ? FunctionKey{std::string_view(), kNoId}
               : FunctionKey{tree.nodes[parent].name, tree.nodes[parent].mapping_name};
  };
  for (uint32_t row = 0; row < tree.nodes.size(); ++row) {
    if (!matcher.Matches(tree.nodes[row].name))
      continue;
    const FunctionKey caller = caller_of(row);
    if (IsBelowSame(tree, row, [&](uint32_t at) {
          return matcher.Matches(tree.nodes[at].name) && caller_of(at) == caller;
        }))
      continue;
    RowOf(rows, *sums, caller).cumulative += tree.nodes[row].cumulative;
  }
}

Status AddCallers(const ImportedTrace& trace, Database* database) {
  TableFunction function;
  function.name = "callers";
  function.columns = SpecOf(CallersTable(trace, {}));
  function.parameters = {{"function", ColumnType::kText},
                         {"dump", ColumnType::kInteger, false}};
  function.make = [&trace, database](std::span<const Cell> cells) -> MadeTable {
    FunctionSums sums;
    HPD_TRY_ASSIGN(const ValuesByCallsite values, ValuesOf(trace, cells[1]));
    HPD_TRY_ASSIGN(sums.tree, BuildFlameTree(trace, values, {}, database->cancel_flag()));
    NameMatcher matcher(cells[0].text);
    SumCallers(matcher, &sums);
    if (sums.rows.empty())
      return Invalid("cannot find callers of " + std::string(cells[0].text) +
                     ": no stack with memory has a function of this name; SELECT name "
                     "FROM top() lists the names");
    std::stable_sort(sums.rows.begin(), sums.rows.end(),
                     [](const FunctionSum& a, const FunctionSum& b) {
                       return a.cumulative.size > b.cumulative.size;
                     });
    return std::make_shared<const Table>(CallersTable(trace, std::move(sums)));
  };
  return database->AddFunction(std::move(function));
}

}  // namespace

Status AddOwnFunctions(const ImportedTrace& trace, Database* database) {
  HPD_TRY(AddFlamegraph(trace, database));
  HPD_TRY(AddDiff(trace, database));
  HPD_TRY(AddTop(trace, database));
  return AddCallers(trace, database);
}

}  // namespace heapprofd
