#include "query/sqlite/virtual_table.h"

#include <sqlite3.h>

#include <algorithm>
#include <optional>

#include "query/sqlite/query_plan.h"
#include "query/sqlite/row_filter.h"
#include "query/sqlite/sqlite_cell.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxColumns = 120;       // so that column + 1 is a positive char
constexpr size_t kRememberedResults = 4;  // of one function

struct Argument {
  Cell cell;
  std::string text;  // what cell.text pointed to

  bool Equals(const Cell& other) const {
    return cell.kind == other.kind && cell.integer == other.integer &&
           cell.real == other.real && text == other.text;
  }
};

struct RememberedResult {
  std::vector<Argument> arguments;
  std::shared_ptr<IndexedTable> table;
};

struct VirtualTable {
  sqlite3_vtab base = {};
  const TableFunction* function = nullptr;
  std::vector<RememberedResult> results;  // newest last
};

struct Cursor {
  sqlite3_vtab_cursor base = {};
  std::shared_ptr<IndexedTable> table;
  std::optional<RowFilter> rows;
  bool is_empty = true;  // no row, whatever `rows` says
  std::vector<Cell> arguments;
  std::vector<Argument> owned_arguments;  // to answer for the hidden columns
  std::vector<RowConstraint> constraints;
};

// SQLite hands our own structures back as pointers to their first member.
VirtualTable* TableOf(sqlite3_vtab* base) {
  return reinterpret_cast<VirtualTable*>(base);  // NOLINT
}

Cursor* CursorOf(sqlite3_vtab_cursor* base) {
  return reinterpret_cast<Cursor*>(base);  // NOLINT
}

int Fail(sqlite3_vtab* table, const std::string& message) {
  sqlite3_free(table->zErrMsg);
  table->zErrMsg = sqlite3_mprintf("%s", message.c_str());
  return SQLITE_ERROR;
}

const char* SqlType(ColumnType type) {
  switch (type) {
    case ColumnType::kInteger:
      return "BIGINT";
    case ColumnType::kReal:
      return "DOUBLE";
    case ColumnType::kText:
      return "TEXT";
  }
  return "";
}

std::string Quoted(const std::string& name) {
  return "\"" + name + "\"";
}

std::string Declaration(const TableFunction& function) {
  std::string sql = "CREATE TABLE x(";
  const char* separator = "";
  for (const ColumnSpec& column : function.columns) {
    sql += separator + Quoted(column.name) + " " + SqlType(column.type) +
           (column.is_hidden ? " HIDDEN" : "");
    separator = ", ";
  }
  for (const Parameter& parameter : function.parameters) {
    sql += separator + Quoted(parameter.name) + " " + SqlType(parameter.type) + " HIDDEN";
    separator = ", ";
  }
  return sql + ")";
}

// SQLite's signature.
// NOLINTNEXTLINE(readability-function-size)
int Connect(sqlite3* database,
            void* auxiliary,
            int /*argument_count*/,
            const char* const* /*arguments*/,
            sqlite3_vtab** result,
            char** error) {
  const auto* function = static_cast<const TableFunction*>(auxiliary);
  const int code = sqlite3_declare_vtab(database, Declaration(*function).c_str());
  if (code != SQLITE_OK) {
    *error = sqlite3_mprintf("%s", sqlite3_errmsg(database));
    return code;
  }
  auto* table = new VirtualTable;
  table->function = function;
  *result = &table->base;
  return SQLITE_OK;
}

int Disconnect(sqlite3_vtab* base) {
  delete TableOf(base);
  return SQLITE_OK;
}

int BestIndex(sqlite3_vtab* base, sqlite3_index_info* info) {
  const TableFunction& function = *TableOf(base)->function;
  if (function.prepare) {
    const Status status = function.prepare();
    if (!status.ok())
      return Fail(base, status.message());
  }
  std::string missing;
  const int code = PlanQuery(function, *info, &missing);
  if (!missing.empty() && function.tell_missing)
    function.tell_missing(missing);
  return code;
}

int Open(sqlite3_vtab* /*table*/, sqlite3_vtab_cursor** result) {
  auto* cursor = new Cursor;
  *result = &cursor->base;
  return SQLITE_OK;
}

int Close(sqlite3_vtab_cursor* base) {
  delete CursorOf(base);
  return SQLITE_OK;
}

enum class Outcome : uint8_t { kConstrain, kAlwaysTrue, kNeverTrue };

// Says what comparing a column with `value` means and fills `constraint`.
Outcome MakeConstraint(ColumnType type,
                       char code,
                       sqlite3_value* value,
                       RowConstraint* constraint) {
  switch (code) {
    case kCodeEqual:
      constraint->comparison = Comparison::kEqual;
      break;
    case kCodeLess:
      constraint->comparison = Comparison::kLess;
      break;
    case kCodeLessEqual:
      constraint->comparison = Comparison::kLessEqual;
      break;
    case kCodeGreater:
      constraint->comparison = Comparison::kGreater;
      break;
    default:
      constraint->comparison = Comparison::kGreaterEqual;
      break;
  }
  if (sqlite3_value_type(value) == SQLITE_NULL)
    return Outcome::kNeverTrue;
  if (type == ColumnType::kText) {
    if (sqlite3_value_type(value) != SQLITE_TEXT)
      return Outcome::kAlwaysTrue;  // left to SQLite, which checks texts again
    constraint->value = Cell::Text(TextOf(value));
    return Outcome::kConstrain;
  }
  const int numeric_type = sqlite3_value_numeric_type(value);
  if (numeric_type == SQLITE_INTEGER || numeric_type == SQLITE_FLOAT) {
    constraint->value = CellOf(value);
    return Outcome::kConstrain;
  }
  // SQL orders every number before every text and blob.
  const bool is_less = code == kCodeLess || code == kCodeLessEqual;
  return is_less ? Outcome::kAlwaysTrue : Outcome::kNeverTrue;
}

std::shared_ptr<IndexedTable> Recall(VirtualTable& table, std::span<const Cell> cells) {
  const auto is_same = [&](const RememberedResult& result) {
    return std::equal(result.arguments.begin(), result.arguments.end(), cells.begin(),
                      cells.end(),
                      [](const Argument& a, const Cell& b) { return a.Equals(b); });
  };
  const auto found = std::find_if(table.results.begin(), table.results.end(), is_same);
  return found == table.results.end() ? nullptr : found->table;
}

int FindTable(VirtualTable& table, Cursor& cursor) {
  cursor.table = Recall(table, cursor.arguments);
  if (cursor.table != nullptr)
    return SQLITE_OK;
  Result<std::shared_ptr<const Table>> made = table.function->make(cursor.arguments);
  if (!made.ok()) {
    Fail(&table.base, made.status().message());
    return made.status().code() == StatusCode::kUnavailable ? SQLITE_INTERRUPT
                                                            : SQLITE_ERROR;
  }
  HPD_CHECK(made.value()->columns.size() == table.function->columns.size());
  cursor.table = std::make_shared<IndexedTable>(std::move(made).value());
  if (table.results.size() == kRememberedResults)
    table.results.erase(table.results.begin());
  table.results.push_back({cursor.owned_arguments, cursor.table});
  return SQLITE_OK;
}

// Takes the values of parameters and constraints. False: no row can satisfy them.
bool TakeValues(const TableFunction& function,
                const char* plan,
                std::span<sqlite3_value*> values,
                Cursor& cursor) {
  bool is_possible = true;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto column = static_cast<size_t>(plan[2 * i]) - 1;
    const char code = plan[2 * i + 1];
    if (code == kCodeParameter) {
      const Cell cell = CellOf(values[i]);
      const size_t parameter = column - function.columns.size();
      cursor.arguments[parameter] = cell;
      cursor.owned_arguments[parameter] = {cell, std::string(cell.text)};
      continue;
    }
    RowConstraint constraint;
    constraint.column = column;
    const Outcome outcome =
        MakeConstraint(function.columns[column].type, code, values[i], &constraint);
    if (outcome == Outcome::kConstrain)
      cursor.constraints.push_back(constraint);
    is_possible &= outcome != Outcome::kNeverTrue;
  }
  return is_possible;
}

// The inner loop of every join: a plain table costs no search and no allocation.
int Filter(sqlite3_vtab_cursor* base,
           int plan_number,
           const char* plan,
           int value_count,
           sqlite3_value** values) {
  Cursor& cursor = *CursorOf(base);
  VirtualTable& table = *TableOf(base->pVtab);
  const TableFunction& function = *table.function;
  if (plan_number == kPlanByRowNumber && cursor.rows &&
      sqlite3_value_type(values[0]) == SQLITE_INTEGER) {
    cursor.is_empty = !cursor.rows->StartAt(sqlite3_value_int64(values[0]));
    return SQLITE_OK;
  }
  cursor.is_empty = true;
  cursor.constraints.clear();
  if (!function.parameters.empty()) {
    cursor.arguments.assign(function.parameters.size(), Cell::Null());
    cursor.owned_arguments.assign(function.parameters.size(), {});
  }
  if (!TakeValues(function, plan, {values, static_cast<size_t>(value_count)}, cursor))
    return SQLITE_OK;
  if (!function.parameters.empty() || cursor.table == nullptr) {
    cursor.rows.reset();
    const int code = FindTable(table, cursor);
    if (code != SQLITE_OK)
      return code;
    cursor.rows.emplace(*cursor.table);
  }
  cursor.rows->Start(cursor.constraints);
  cursor.is_empty = false;
  return SQLITE_OK;
}

int Next(sqlite3_vtab_cursor* base) {
  CursorOf(base)->rows->Next();
  return SQLITE_OK;
}

int AtEnd(sqlite3_vtab_cursor* base) {
  const Cursor& cursor = *CursorOf(base);
  return cursor.is_empty || cursor.rows->at_end() ? 1 : 0;
}

// `lifetime`: SQLITE_STATIC when the text outlives the statement.
void SetResult(sqlite3_context* context,
               const Cell& cell,
               sqlite3_destructor_type lifetime) {
  switch (cell.kind) {
    case CellKind::kNull:
      sqlite3_result_null(context);
      break;
    case CellKind::kInteger:
      sqlite3_result_int64(context, cell.integer);
      break;
    case CellKind::kReal:
      sqlite3_result_double(context, cell.real);
      break;
    case CellKind::kText:
      sqlite3_result_text64(context, cell.text.empty() ? "" : cell.text.data(),
                            cell.text.size(), lifetime, SQLITE_UTF8);
      break;
  }
}

// Gives SQLite the value of a column. Texts of the table outlive the statement.
struct ResultAt {
  sqlite3_context* context;
  size_t row;

  void operator()(RowNumbers) const {
    sqlite3_result_int64(context, static_cast<sqlite3_int64>(row));
  }

  template <typename Integer>
  void operator()(std::span<const Integer> values) const {
    if constexpr (std::is_floating_point_v<Integer>)
      sqlite3_result_double(context, values[row]);
    else if (std::is_same_v<Integer, uint32_t> && values[row] == UINT32_MAX)
      sqlite3_result_null(context);
    else
      sqlite3_result_int64(context, static_cast<sqlite3_int64>(values[row]));
  }

  void operator()(const InternedTexts& texts) const {
    const StringId id = texts.ids[row];
    if (id == UINT32_MAX)
      return sqlite3_result_null(context);
    const std::string_view text = texts.pool->Get(id);
    sqlite3_result_text64(context, text.empty() ? "" : text.data(), text.size(),
                          SQLITE_STATIC, SQLITE_UTF8);
  }

  void operator()(const ComputedCells& compute) const {
    SetResult(context, compute(row), SQLITE_STATIC);
  }

  void operator()(const MadeTexts& make) const {
    const std::optional<std::string> text = make(row);
    SetResult(context, text ? Cell::Text(*text) : Cell::Null(), SQLITE_TRANSIENT);
  }
};

int ColumnAt(sqlite3_vtab_cursor* base, sqlite3_context* context, int index) {
  const Cursor& cursor = *CursorOf(base);
  const std::vector<TableColumn>& columns = cursor.table->table().columns;
  const auto column = static_cast<size_t>(index);
  if (column < columns.size()) {
    std::visit(ResultAt{context, cursor.rows->row()}, columns[column].source);
  } else {
    const Argument& argument = cursor.owned_arguments[column - columns.size()];
    Cell cell = argument.cell;
    cell.text = argument.text;
    SetResult(context, cell, SQLITE_TRANSIENT);
  }
  return SQLITE_OK;
}

int RowId(sqlite3_vtab_cursor* base, sqlite3_int64* result) {
  *result = static_cast<sqlite3_int64>(CursorOf(base)->rows->row());
  return SQLITE_OK;
}

const sqlite3_module& Module() {
  static const sqlite3_module module = [] {
    sqlite3_module methods = {};
    methods.xConnect = Connect;  // no xCreate: the table is there without being made
    methods.xBestIndex = BestIndex;
    methods.xDisconnect = Disconnect;
    methods.xOpen = Open;
    methods.xClose = Close;
    methods.xFilter = Filter;
    methods.xNext = Next;
    methods.xEof = AtEnd;
    methods.xColumn = ColumnAt;
    methods.xRowid = RowId;
    return methods;
  }();
  return module;
}

}  // namespace

std::vector<ColumnSpec> SpecOf(const Table& table) {
  std::vector<ColumnSpec> specs;
  for (const TableColumn& column : table.columns)
    specs.push_back({column.name, column.type, column.order,
                     std::holds_alternative<RowNumbers>(column.source), column.is_hidden,
                     std::holds_alternative<MadeTexts>(column.source)});
  return specs;
}

Status RegisterTableFunction(sqlite3* database, TableFunction function) {
  HPD_CHECK(function.columns.size() + function.parameters.size() <= kMaxColumns);
  auto owned = std::make_unique<TableFunction>(std::move(function));
  const std::string name = owned->name;
  const int code = sqlite3_create_module_v2(
      database, name.c_str(), &Module(), owned.release(),
      [](void* pointer) { delete static_cast<TableFunction*>(pointer); });
  if (code != SQLITE_OK)
    return Status(StatusCode::kUnavailable,
                  "cannot make table " + name + ": " + sqlite3_errmsg(database));
  return {};
}

}  // namespace heapprofd
