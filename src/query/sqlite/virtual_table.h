// Tables and table functions in the form that SQLite wants them: one module class for
// both. A plain table is a function without parameters whose result is kept.
//
// Parameters of a function are hidden columns: `f(a, b)` and
// `f WHERE first = a AND second = b` are the same to SQLite.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "query/sqlite/table.h"

struct sqlite3;

namespace heapprofd {

struct Parameter {
  std::string name;
  ColumnType type = ColumnType::kInteger;
  bool is_required = true;
};

struct ColumnSpec {
  std::string name;
  ColumnType type = ColumnType::kInteger;
  ColumnOrder order = ColumnOrder::kNone;
  bool is_row_number = false;
  bool is_hidden = false;  // not in SELECT *
  bool is_made = false;    // MadeTexts
};

// An argument that was not given is NULL, too: functions treat both alike.
using TableMaker =
    std::function<Result<std::shared_ptr<const Table>>(std::span<const Cell> arguments)>;

struct TableFunction {
  std::string name;
  std::vector<ColumnSpec> columns;
  std::vector<Parameter> parameters;
  std::function<uint64_t()> count_rows;  // null: a thousand or so
  std::function<Status()> prepare;       // before a query that reads it is planned
  // Why a query has no plan, should it have none.
  std::function<void(const std::string& missing_argument)> tell_missing;
  TableMaker make;  // must return exactly `columns`, with at least their order
};

// The columns of a table that exists already.
std::vector<ColumnSpec> SpecOf(const Table& table);

// Makes `function` known to the database as an eponymous virtual table. The database
// keeps it.
Status RegisterTableFunction(sqlite3* database, TableFunction function);

}  // namespace heapprofd
