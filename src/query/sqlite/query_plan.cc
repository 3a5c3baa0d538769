#include "query/sqlite/query_plan.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

namespace heapprofd {
namespace {

std::optional<char> CodeOf(unsigned char op) {
  switch (op) {
    case SQLITE_INDEX_CONSTRAINT_EQ:
      return kCodeEqual;
    case SQLITE_INDEX_CONSTRAINT_LT:
      return kCodeLess;
    case SQLITE_INDEX_CONSTRAINT_LE:
      return kCodeLessEqual;
    case SQLITE_INDEX_CONSTRAINT_GT:
      return kCodeGreater;
    case SQLITE_INDEX_CONSTRAINT_GE:
      return kCodeGreaterEqual;
    default:
      return std::nullopt;
  }
}

// What the chosen constraints leave over, for the planner.
struct PlanCost {
  double rows = 1;
  double cost = 1;
  bool is_unique = false;
};

// `all`: rows of the table.
void Refine(PlanCost* estimate, const ColumnSpec& spec, double all, char code) {
  const bool is_ordered = spec.order == ColumnOrder::kAscending;
  if (code == kCodeEqual && (spec.is_row_number || (is_ordered && spec.name == "id"))) {
    *estimate = {1, 1, true};
  } else if (!estimate->is_unique && code == kCodeEqual) {
    estimate->rows = std::max(2.0, estimate->rows / std::sqrt(std::max(2.0, all)));
    estimate->cost = std::min(estimate->cost, 20 + estimate->rows);
  } else if (!estimate->is_unique && is_ordered) {
    estimate->rows = std::max(2.0, estimate->rows / 4);
    estimate->cost = std::min(estimate->cost, 20 + estimate->rows);
  }
}

class Planner {
 public:
  Planner(const TableFunction& function, sqlite3_index_info& info)
      : function_(function), info_(info) {
    constexpr double kUnknown = 1000;
    all_ = function_.count_rows ? static_cast<double>(function_.count_rows()) : kUnknown;
    estimate_ = {all_, all_ + 10, false};
  }

  int Plan(std::string* missing) {
    std::vector<bool> given(function_.parameters.size(), false);
    for (int i = 0; i < info_.nConstraint; ++i) {
      const int code = Consider(i, given);
      if (code != SQLITE_OK)
        return code;
    }
    for (size_t i = 0; i < given.size(); ++i) {
      if (!given[i] && function_.parameters[i].is_required) {
        *missing = "cannot use " + function_.name + ": its argument " +
                   function_.parameters[i].name + " is missing; " + Usage();
        return SQLITE_CONSTRAINT;
      }
    }
    if (!given.empty() && std::ranges::find(given, true) == given.end())
      estimate_.cost = kWithoutArguments;
    info_.idxStr = sqlite3_mprintf("%s", plan_.c_str());
    info_.needToFreeIdxStr = 1;
    info_.estimatedCost = estimate_.cost;
    info_.estimatedRows = static_cast<sqlite3_int64>(estimate_.rows);
    info_.idxNum = is_by_row_number_ && taken_ == 1 ? kPlanByRowNumber : kPlanAny;
    if (estimate_.is_unique)
      info_.idxFlags = SQLITE_INDEX_SCAN_UNIQUE;
    info_.orderByConsumed = IsInWantedOrder() ? 1 : 0;
    return SQLITE_OK;
  }

 private:
  // Each branch of an OR is planned by itself, and without the arguments. Were it chosen,
  // these would be compared with the rows once more, and one that is NULL equals nothing.
  static constexpr double kWithoutArguments = 1e30;

  int Consider(int index, std::vector<bool>& given) {
    const auto& constraint = info_.aConstraint[index];
    if (constraint.iColumn < 0)
      return SQLITE_OK;
    const auto column = static_cast<size_t>(constraint.iColumn);
    if (column >= function_.columns.size()) {
      const size_t parameter = column - function_.columns.size();
      if (constraint.op != SQLITE_INDEX_CONSTRAINT_EQ || given[parameter])
        return SQLITE_OK;
      if (constraint.usable == 0)
        return SQLITE_CONSTRAINT;  // try another order of the joined tables
      given[parameter] = true;
      Take(index, column, kCodeParameter, true);
      return SQLITE_OK;
    }
    const std::optional<char> code = CodeOf(constraint.op);
    if (!code || constraint.usable == 0)
      return SQLITE_OK;
    const bool is_text = function_.columns[column].type == ColumnType::kText;
    if (is_text &&
        (function_.columns[column].is_made || code != kCodeEqual ||
         sqlite3_stricmp(sqlite3_vtab_collation(&info_, index), "BINARY") != 0))
      return SQLITE_OK;
    Take(index, column, *code, code == kCodeEqual && !is_text);
    is_by_row_number_ |= code == kCodeEqual && function_.columns[column].is_row_number;
    Refine(&estimate_, function_.columns[column], all_, *code);
    return SQLITE_OK;
  }

  // `is_exact`: SQLite need not check the rows again.
  void Take(int index, size_t column, char code, bool is_exact) {
    info_.aConstraintUsage[index].argvIndex = ++taken_;
    info_.aConstraintUsage[index].omit = is_exact ? 1 : 0;
    plan_ += static_cast<char>(column + 1);
    plan_ += code;
  }

  // Rows always come in ascending row number.
  bool IsInWantedOrder() const {
    if (info_.nOrderBy != 1 || info_.aOrderBy[0].desc != 0 ||
        info_.aOrderBy[0].iColumn < 0)
      return false;
    const auto column = static_cast<size_t>(info_.aOrderBy[0].iColumn);
    return column < function_.columns.size() &&
           function_.columns[column].order == ColumnOrder::kAscending;
  }

  std::string Usage() const {
    std::string text = "its form is " + function_.name + "(";
    const char* separator = "";
    for (const Parameter& parameter : function_.parameters) {
      text += separator + parameter.name;
      separator = ", ";
    }
    return text + ")";
  }

  const TableFunction& function_;
  sqlite3_index_info& info_;
  double all_ = 0;
  PlanCost estimate_;
  std::string plan_;
  int taken_ = 0;
  bool is_by_row_number_ = false;
};

}  // namespace

int PlanQuery(const TableFunction& function,
              sqlite3_index_info& info,
              std::string* missing) {
  return Planner(function, info).Plan(missing);
}

}  // namespace heapprofd
