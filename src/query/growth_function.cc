// heap_profile_growth(dump, view): how the memory of each callsite went from dump to dump
// of a heap, up to one of them. What is live in malloc and the like is its callers'.
#include "query/growth_function.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "query/allocators.h"
#include "query/dump_values.h"
#include "query/flame_functions.h"
#include "query/sum.h"
#include "query/tree_tables.h"
#include "symbolize/demangle.h"

namespace heapprofd {
namespace {

struct GrowthRow {
  uint32_t callsite = 0;
  int64_t first = 0;
  int64_t last = 0;
  uint32_t rises = 0;
  uint32_t falls = 0;
  std::optional<double> variance = {};  // of both, at most
  StringId name = kEmptyString;         // in Growth::names
};

struct Growth {
  std::vector<GrowthRow> rows;
  size_t dumps = 0;
  StringPool names;  // many callsites are of one function
};

// Those of its heap up to this one, in order.
std::vector<uint32_t> DumpsUpTo(const ImportedTrace& trace, uint32_t id) {
  const ImportedDump& last = trace.dumps[id];
  std::vector<uint32_t> dumps;
  for (uint32_t other = 0; other < trace.dumps.size(); ++other) {
    const ImportedDump& dump = trace.dumps[other];
    if (dump.upid == last.upid && dump.heap_name == last.heap_name && dump.ts <= last.ts)
      dumps.push_back(other);
  }
  std::stable_sort(dumps.begin(), dumps.end(), [&](uint32_t a, uint32_t b) {
    return trace.dumps[a].ts < trace.dumps[b].ts;
  });
  return dumps;
}

class GrowthSums {
 public:
  GrowthSums(const ImportedTrace& trace, ProfileView view, const CancelFlag& cancelled)
      : trace_(trace),
        cancelled_(cancelled),
        figure_(FigureOf(view)),
        holders_(HoldersOf(trace)),
        places_(holders_.size(), kNoId),
        name_ids_(trace.strings.size(), kNoId) {}

  // The next dump.
  void Add(const ImportedDump& dump) {
    std::vector<uint32_t> changed;
    for (size_t i = 0; i < dump.allocation_count && !cancelled_; ++i)
      AddAllocation(dump.first_allocation + i, &changed);
    for (const uint32_t place : changed) {
      GrowthRow& row = growth_.rows[place];
      if (growth_.dumps == 0)
        row.first = row.last;
      else if (row.last != before_[place])
        ++(row.last > before_[place] ? row.rises : row.falls);
      before_[place] = row.last;
    }
    ++growth_.dumps;
  }

  // Standard errors of this dump.
  void AddVariances(uint32_t dump, ProfileView view) {
    ValuesByCallsite values(holders_.size());
    heapprofd::AddVariances(trace_, dump, view, &values);
    if (!values.has_variances())
      return;
    for (uint32_t callsite = 0; callsite < holders_.size(); ++callsite) {
      const uint32_t place = places_[holders_[callsite]];
      if (const double variance = values.VarianceOf(callsite);
          variance > 0 && place != kNoId)
        growth_.rows[place].variance =
            growth_.rows[place].variance.value_or(0) + variance;
    }
  }

  // kUnavailable when cancelled.
  Result<Growth> Take() {
    for (GrowthRow& row : growth_.rows) {
      if (cancelled_)
        break;
      row.name = NameId(RecordedNameOf(trace_.callsites.frame[row.callsite]));
    }
    if (cancelled_)
      return WasCancelled();
    return std::move(growth_);
  }

 private:
  void AddAllocation(size_t at, std::vector<uint32_t>* changed) {
    const uint32_t callsite = holders_[trace_.allocations.callsite[at]];
    uint32_t& place = places_[callsite];
    if (place == kNoId) {
      place = static_cast<uint32_t>(growth_.rows.size());
      growth_.rows.push_back({.callsite = callsite});
      before_.push_back(0);
    }
    int64_t& last = growth_.rows[place].last;
    last = Sum(last, AllocationAt(trace_, at).*figure_);
    changed->push_back(place);
  }

  StringId RecordedNameOf(uint32_t frame) const {
    const uint32_t set = trace_.frames.symbol_set[frame];
    return set != kNoId ? trace_.symbols.name[set] : trace_.frames.ShownName(frame);
  }

  StringId NameId(StringId recorded) {
    if (recorded >= name_ids_.size())
      return kEmptyString;
    StringId& id = name_ids_[recorded];
    if (id == kNoId)
      id = growth_.names.Intern(Demangle(trace_.Text(recorded)));
    return id;
  }

  const ImportedTrace& trace_;
  const CancelFlag& cancelled_;
  FlameFigure figure_;
  std::vector<uint32_t> holders_;
  std::vector<uint32_t> places_;    // in the rows, by callsite
  std::vector<int64_t> before_;     // by place: at the dump before
  std::vector<StringId> name_ids_;  // trace's id -> id in growth_.names
  Growth growth_;
};

Table GrowthTable(const ImportedTrace& trace, Growth made) {
  auto storage = std::make_shared<const Growth>(std::move(made));
  const std::vector<GrowthRow>& rows = storage->rows;
  const auto number = [&rows](const char* name, auto member) {
    return NumberColumn(name, [&rows, member](size_t row) { return rows[row].*member; });
  };
  Table table;
  table.row_count = rows.size();
  table.columns = {
      TableColumn::RowNumber("id"),
      number("callsite_id", &GrowthRow::callsite),
      TableColumn::Computed("name", ColumnType::kText,
                            [made = storage.get()](size_t row) {
                              const std::string_view name =
                                  made->names.Get(made->rows[row].name);
                              return name.empty() ? Cell::Null() : Cell::Text(name);
                            }),
      TextColumn("mapping_name", trace,
                 [&rows, &trace](size_t row) {
                   const uint32_t frame = trace.callsites.frame[rows[row].callsite];
                   return trace.mappings[trace.frames.mapping[frame]].name;
                 }),
      NumberColumn("dumps", [dumps = storage->dumps](size_t) { return dumps; }),
      number("first", &GrowthRow::first),
      number("last", &GrowthRow::last),
      NumberColumn("growth",
                   [&rows](size_t row) {
                     const int64_t first = rows[row].first;
                     return Sum(rows[row].last, first == INT64_MIN ? INT64_MAX : -first);
                   }),
      TableColumn::Computed("growth_error", ColumnType::kReal,
                            [&rows](size_t row) {
                              const std::optional<double>& variance = rows[row].variance;
                              return variance ? Cell::Real(std::sqrt(*variance))
                                              : Cell::Null();
                            }),
      number("rises", &GrowthRow::rises),
      number("falls", &GrowthRow::falls)};
  table.storage = std::move(storage);
  return table;
}

}  // namespace

TableFunction GrowthFunction(const ImportedTrace& trace, const CancelFlag& cancelled) {
  TableFunction function =
      FunctionWithColumnsOf("heap_profile_growth", GrowthTable(trace, {}));
  function.parameters = {{"dump"}, {"view", ColumnType::kText, false}};
  function.make = [&trace, &cancelled](std::span<const Cell> cells) -> MadeTable {
    HPD_TRY_ASSIGN(const uint32_t last, DumpOf(trace, cells[0]));
    HPD_TRY_ASSIGN(const ProfileView view, ViewOf(cells[1]));
    HPD_TRY(CheckTold(trace, last, view));
    const std::vector<uint32_t> dumps = DumpsUpTo(trace, last);
    GrowthSums sums(trace, view, cancelled);
    for (const uint32_t dump : dumps)
      sums.Add(trace.dumps[dump]);
    if (dumps.size() > 1 && !cancelled) {
      sums.AddVariances(dumps.front(), view);
      sums.AddVariances(dumps.back(), view);
    }
    HPD_TRY_ASSIGN(Growth growth, sums.Take());
    return std::make_shared<const Table>(GrowthTable(trace, std::move(growth)));
  };
  return function;
}

Status AddGrowth(const ImportedTrace& trace, Database* database) {
  return database->AddFunction(GrowthFunction(trace, database->cancel_flag()));
}

}  // namespace heapprofd
