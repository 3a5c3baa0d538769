// callers(function, dump) and top(view, n, dump): call trees summed by function. Names
// are demangled; functions of one name in two files are two.
#include <algorithm>
#include <optional>
#include <string>

#include "query/allocators.h"
#include "query/dump_values.h"
#include "query/flame_functions.h"
#include "query/tree_tables.h"
#include "symbolize/demangle.h"
#include "tables/trace_builder.h"

namespace heapprofd {
namespace {

struct FunctionSum {
  StringId name = kNoId;  // in the tree's names; kNoId: there is no function
  StringId mapping_name = kNoId;
  FlameValues self;
  FlameValues cumulative;
};

struct FunctionSums {
  FlameTree tree;  // owns the names
  std::vector<FunctionSum> rows;
  ProfileView view = ProfileView::kLiveSize;
  ToldFigures told;
};

// Rows of FunctionSums by name and file.
class FunctionIndex {
 public:
  explicit FunctionIndex(FunctionSums* sums) : sums_(sums) {}

  uint32_t RowOf(StringId name, StringId mapping_name) {
    std::vector<FunctionSum>& rows = sums_->rows;
    index_.Prepare(
        [&rows](uint32_t row) { return HashOf(rows[row].name, rows[row].mapping_name); });
    uint32_t& row = index_.Find(HashOf(name, mapping_name), [&](uint32_t other) {
      return rows[other].name == name && rows[other].mapping_name == mapping_name;
    });
    if (row == kNoId) {
      row = static_cast<uint32_t>(rows.size());
      rows.push_back({name, mapping_name, {}, {}});
      index_.CountAdded();
    }
    return row;
  }

 private:
  static uint64_t HashOf(StringId name, StringId mapping_name) {
    return Mix(uint64_t{name} << 32 | mapping_name);
  }

  FunctionSums* sums_;
  RowIndex index_;
};

// One dump, or everything in the trace.
Result<ValuesByCallsite> ValuesOf(const ImportedTrace& trace, const Cell& dump) {
  if (dump.is_null())
    return SumAllocations(trace, {});
  HPD_TRY_ASSIGN(const uint32_t id, DumpOf(trace, dump));
  return ValuesAt(trace, id);
}

// What the dump gives, or all of the trace.
Result<ToldFigures> ToldOf(const ImportedTrace& trace, const Cell& dump) {
  if (!dump.is_null()) {
    HPD_TRY_ASSIGN(const uint32_t id, DumpOf(trace, dump));
    return ToldInRows(trace.dumps[id]);
  }
  ToldFigures told;
  for (const ImportedDump& one : trace.dumps)
    told &= ToldInRows(one);
  return told;
}

Status CheckAllTold(const ImportedTrace& trace, const Cell& dump, ProfileView view) {
  if (!dump.is_null()) {
    HPD_TRY_ASSIGN(const uint32_t id, DumpOf(trace, dump));
    return CheckTold(trace, id, view);
  }
  for (uint32_t id = 0; id < trace.dumps.size(); ++id)
    HPD_TRY(CheckTold(trace, id, view));
  return {};
}

// Memory below recursive calls counts once, at the outermost one.
void SumFunctions(FunctionSums* sums) {
  const FlameTree& tree = sums->tree;
  FunctionIndex index(sums);
  std::vector<uint32_t> functions;  // by node
  functions.reserve(tree.nodes.size());
  for (size_t row = 0; row < tree.nodes.size(); ++row) {
    const TreeFunction& function = tree.FunctionOf(row);
    functions.push_back(index.RowOf(function.name, function.mapping_name));
  }
  const std::vector<bool> is_recursive = HasSameAbove(tree, functions);
  for (size_t row = 0; row < functions.size(); ++row) {
    FunctionSum& sum = sums->rows[functions[row]];
    sum.self += tree.SelfOf(row);
    if (!is_recursive[row])
      sum.cumulative += tree.CumulativeOf(row);
  }
}

// The columns that both tables begin with.
std::vector<TableColumn> FunctionColumns(const ImportedTrace& trace,
                                         const FunctionSums& sums) {
  return {TableColumn::RowNumber("id"),
          TableColumn::Computed("name", ColumnType::kText,
                                [&sums](size_t row) {
                                  const StringId name = sums.rows[row].name;
                                  return name == kNoId
                                             ? Cell::Null()
                                             : Cell::Text(sums.tree.names->Get(name));
                                }),
          TextColumn("mapping_name", trace,
                     [&sums](size_t row) { return sums.rows[row].mapping_name; })};
}

Table TopTable(const ImportedTrace& trace, FunctionSums made) {
  auto storage = std::make_shared<const FunctionSums>(std::move(made));
  const FunctionSums& sums = *storage;
  const auto figure = FigureOf(sums.view);
  Table table;
  table.storage = storage;
  table.row_count = sums.rows.size();
  table.columns = FunctionColumns(trace, sums);
  table.columns.push_back(NumberColumn(
      "self", [&sums, figure](size_t row) { return sums.rows[row].self.*figure; }));
  table.columns.push_back(NumberColumn("cumulative", [&sums, figure](size_t row) {
    return sums.rows[row].cumulative.*figure;
  }));
  return table;
}

Status AddTop(const ImportedTrace& trace, Database* database) {
  TableFunction function = FunctionWithColumnsOf("top", TopTable(trace, {}));
  function.parameters = {{"view", ColumnType::kText, false},
                         {"n", ColumnType::kInteger, false},
                         {"dump", ColumnType::kInteger, false}};
  function.make = [&trace, database](std::span<const Cell> cells) -> MadeTable {
    FunctionSums sums;
    HPD_TRY_ASSIGN(sums.view, ViewOf(cells[0]));
    HPD_TRY(CheckAllTold(trace, cells[2], sums.view));
    HPD_TRY_ASSIGN(ValuesByCallsite values, ValuesOf(trace, cells[2]));
    MoveToCallers(trace, &values);
    HPD_TRY_ASSIGN(sums.tree,
                   BuildFlameTree(trace, std::move(values), {}, database->cancel_flag()));
    SumFunctions(&sums);
    const auto figure = FigureOf(sums.view);
    std::stable_sort(sums.rows.begin(), sums.rows.end(),
                     [figure](const FunctionSum& a, const FunctionSum& b) {
                       return a.self.*figure > b.self.*figure;
                     });
    if (cells[1].kind == CellKind::kInteger && cells[1].integer >= 0 &&
        static_cast<uint64_t>(cells[1].integer) < sums.rows.size())
      sums.rows.resize(static_cast<size_t>(cells[1].integer));
    return std::make_shared<const Table>(TopTable(trace, std::move(sums)));
  };
  return database->AddFunction(std::move(function));
}

Table CallersTable(const ImportedTrace& trace, FunctionSums made) {
  struct Figure {
    const char* name;
    FlameFigure value;
    bool ToldFigures::*is_told;
  };

  constexpr Figure kFigures[] = {
      {"count", &FlameValues::count, &ToldFigures::live_count},
      {"size", &FlameValues::size, &ToldFigures::live_size},
      {"alloc_count", &FlameValues::alloc_count, &ToldFigures::alloc_count},
      {"alloc_size", &FlameValues::alloc_size, &ToldFigures::alloc_size}};
  auto storage = std::make_shared<const FunctionSums>(std::move(made));
  const FunctionSums& sums = *storage;
  Table table;
  table.storage = storage;
  table.row_count = sums.rows.size();
  table.columns = FunctionColumns(trace, sums);
  for (const Figure& figure : kFigures)
    table.columns.push_back(
        NumberColumn(figure.name, [&sums, figure](size_t row) -> std::optional<int64_t> {
          if (!(sums.told.*figure.is_told))
            return std::nullopt;
          return sums.rows[row].cumulative.*figure.value;
        }));
  return table;
}

// Whether a function is the one that was asked for: by its whole name, or by its name
// without parameters and template arguments.
class NameMatcher {
 public:
  explicit NameMatcher(std::string_view wanted)
      : wanted_(wanted), demangled_(Demangle(wanted)) {}

  bool Matches(const StringPool& names, StringId id) {
    if (known_.size() <= id)
      known_.resize(names.size(), kUnknown);
    if (known_[id] == kUnknown) {
      const std::string_view name = names.Get(id);
      known_[id] = name == wanted_ || name == demangled_ ||
                           name.substr(0, name.find('(')) == wanted_
                       ? kYes
                       : kNo;
    }
    return known_[id] == kYes;
  }

 private:
  enum Answer : uint8_t { kUnknown, kNo, kYes };

  std::string wanted_;
  std::string demangled_;
  std::vector<Answer> known_;  // by id
};

// A recursive function's memory counts once for each caller, at the outermost call.
void SumCallers(NameMatcher& matcher, FunctionSums* sums) {
  const FlameTree& tree = sums->tree;
  FunctionIndex index(sums);
  std::vector<uint32_t> callers;  // by node; kNoId: another function
  callers.reserve(tree.nodes.size());
  for (size_t row = 0; row < tree.nodes.size(); ++row) {
    const uint32_t parent = tree.nodes[row].parent;
    if (!matcher.Matches(*tree.names, tree.FunctionOf(row).name)) {
      callers.push_back(kNoId);
    } else if (parent == kNoId) {
      callers.push_back(index.RowOf(kNoId, kNoId));
    } else {
      const TreeFunction& caller = tree.FunctionOf(parent);
      callers.push_back(index.RowOf(caller.name, caller.mapping_name));
    }
  }
  const std::vector<bool> is_recursive = HasSameAbove(tree, callers);
  for (size_t row = 0; row < callers.size(); ++row) {
    if (callers[row] != kNoId && !is_recursive[row])
      sums->rows[callers[row]].cumulative += tree.CumulativeOf(row);
  }
}

Status AddCallers(const ImportedTrace& trace, Database* database) {
  TableFunction function = FunctionWithColumnsOf("callers", CallersTable(trace, {}));
  function.parameters = {{"function", ColumnType::kText},
                         {"dump", ColumnType::kInteger, false}};
  function.make = [&trace, database](std::span<const Cell> cells) -> MadeTable {
    FunctionSums sums;
    HPD_TRY_ASSIGN(sums.told, ToldOf(trace, cells[1]));
    HPD_TRY_ASSIGN(ValuesByCallsite values, ValuesOf(trace, cells[1]));
    HPD_TRY_ASSIGN(sums.tree,
                   BuildFlameTree(trace, std::move(values), {}, database->cancel_flag()));
    NameMatcher matcher(cells[0].text);
    SumCallers(matcher, &sums);
    if (sums.rows.empty())
      return Status(StatusCode::kInvalidArgument,
                    "cannot find callers of " + std::string(cells[0].text) +
                        ": no stack with memory has a function of this name; SELECT "
                        "name FROM top() lists the names");
    std::stable_sort(sums.rows.begin(), sums.rows.end(),
                     [](const FunctionSum& a, const FunctionSum& b) {
                       return a.cumulative.size > b.cumulative.size;
                     });
    return std::make_shared<const Table>(CallersTable(trace, std::move(sums)));
  };
  return database->AddFunction(std::move(function));
}

}  // namespace

Status AddSummingFunctions(const ImportedTrace& trace, Database* database) {
  HPD_TRY(AddTop(trace, database));
  return AddCallers(trace, database);
}

}  // namespace heapprofd
