// How SQLite and our tables agree on which conditions of a query a table checks itself.
#pragma once

#include <sqlite3.h>

#include <string>

#include "query/sqlite/virtual_table.h"

namespace heapprofd {

// In idxStr each constraint is two characters: column + 1, and one of these.
enum ConstraintCode : char {
  kCodeParameter = 'p',
  kCodeEqual = '=',
  kCodeLess = '<',
  kCodeLessEqual = 'l',
  kCodeGreater = '>',
  kCodeGreaterEqual = 'g',
};

// idxNum: the inner loops of most joins.
enum PlanNumber : int { kPlanAny = 0, kPlanByRowNumber = 1 };

// SQLite's xBestIndex: fills the output part of `info`. SQLITE_CONSTRAINT: there may be
// another way to plan the query; `*missing` tells of an argument that has no value in this
// one, when that is why.
int PlanQuery(const TableFunction& function,
              sqlite3_index_info& info,
              std::string* missing);

}  // namespace heapprofd
