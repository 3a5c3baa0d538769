#include "query/sqlite/database.h"

#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "query/sqlite/sqlite_cell.h"

namespace heapprofd {
namespace {

// Larger values have no honest use; they bound what one hostile statement can cost.
constexpr std::array<std::pair<int, int>, 11> kLimits = {{
    {SQLITE_LIMIT_LENGTH, 64 << 20},  // bytes of a value
    {SQLITE_LIMIT_SQL_LENGTH, 1 << 20},
    {SQLITE_LIMIT_COLUMN, 1000},
    {SQLITE_LIMIT_EXPR_DEPTH, 200},
    {SQLITE_LIMIT_COMPOUND_SELECT, 200},
    {SQLITE_LIMIT_VDBE_OP, 1 << 20},
    {SQLITE_LIMIT_FUNCTION_ARG, 100},
    {SQLITE_LIMIT_ATTACHED, 0},
    {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000},
    {SQLITE_LIMIT_VARIABLE_NUMBER, 1000},
    {SQLITE_LIMIT_TRIGGER_DEPTH, 1},
}};
constexpr int kOperationsPerCancelCheck = 10000;

// Runs of so many kB, which fit into the processor's caches, are sorted and then merged
// from files that have no name: no slower than one large sort in memory, and it bounds
// the memory. A second thread sorts and writes runs while the query makes the next one (a
// single one would have to be waited for).
constexpr char kSortInFiles[] =
    "PRAGMA temp_store=FILE; PRAGMA cache_size=-4000; PRAGMA threads=2";
constexpr char kSortInMemory[] = "PRAGMA temp_store=MEMORY";

// In any of the places where SQLite looks for room.
bool CanMakeTemporaryFiles() {
  const char* const places[] = {getenv("SQLITE_TMPDIR"), getenv("TMPDIR"), "/var/tmp",
                                "/usr/tmp", "/tmp"};
  return std::any_of(std::begin(places), std::end(places), [](const char* place) {
    return place != nullptr && access(place, W_OK | X_OK) == 0;
  });
}

Status ErrorOf(sqlite3* handle, int code) {
  const int primary = code & 0xff;
  if (primary == SQLITE_INTERRUPT)
    return WasCancelled();
  if (primary == SQLITE_NOMEM)
    return Status(StatusCode::kUnavailable,
                  "cannot finish the query: it needs more memory than is allowed; "
                  "narrow it down with WHERE or LIMIT");
  if (primary == SQLITE_FULL || primary == SQLITE_IOERR)
    return Status(StatusCode::kIo,
                  "cannot finish the query: sorting its rows needs more room for "
                  "temporary files; free some, set SQLITE_TMPDIR to another directory, "
                  "or narrow the query down with WHERE");
  if (primary == SQLITE_AUTH)
    return Status(StatusCode::kInvalidArgument,
                  std::string("cannot run the statement: ") + sqlite3_errmsg(handle) +
                      "; the trace is read-only, SELECT and CREATE VIEW are possible");
  constexpr std::string_view kPrefix = "cannot run the query: ";
  const std::string message = sqlite3_errmsg(handle);
  const bool has_prefix = message.starts_with(kPrefix);  // of a function that is a query
  return Status(StatusCode::kInvalidArgument,
                (has_prefix ? "" : std::string(kPrefix)) + message);
}

// SQLite's words for a table function without an argument that it must have.
constexpr char kNoPlan[] = "no query solution";

bool IsSchemaTable(const char* name) {
  return name != nullptr &&
         (strcmp(name, "sqlite_master") == 0 || strcmp(name, "sqlite_temp_master") == 0);
}

// One would run foreign code, the other tells addresses of this process.
bool IsDeniedFunction(const char* name) {
  return name != nullptr &&
         (strcmp(name, "load_extension") == 0 || strcmp(name, "fts3_tokenizer") == 0);
}

// Reading, and views: these are names for queries, they hold no data.
// SQLite's signature.
// NOLINTNEXTLINE(readability-function-size)
int Authorize(void* /*context*/,
              int action,
              const char* first,
              const char* second,
              const char* /*database*/,
              const char* /*trigger*/) {
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
    case SQLITE_CREATE_VIEW:
    case SQLITE_CREATE_TEMP_VIEW:
    case SQLITE_DROP_VIEW:
    case SQLITE_DROP_TEMP_VIEW:
    case SQLITE_DELETE:  // part of DROP VIEW; nothing can be deleted from our tables
      return SQLITE_OK;
    case SQLITE_INSERT:
    case SQLITE_UPDATE:
      return IsSchemaTable(first) ? SQLITE_OK : SQLITE_DENY;
    case SQLITE_FUNCTION:
      return IsDeniedFunction(second) ? SQLITE_DENY : SQLITE_OK;
    case SQLITE_PRAGMA:
      return first != nullptr && strncmp(first, "table_", 6) == 0 ? SQLITE_OK
                                                                  : SQLITE_DENY;
    default:
      return SQLITE_DENY;
  }
}

int CheckCancelled(void* flag) {
  return static_cast<CancelFlag*>(flag)->load(std::memory_order_relaxed) ? 1 : 0;
}

void RunScalar(sqlite3_context* context, int count, sqlite3_value** values) {
  const auto& function = *static_cast<const ScalarFunction*>(sqlite3_user_data(context));
  std::vector<Cell> arguments;
  arguments.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i)
    arguments.push_back(CellOf(values[i]));
  Result<OwnedCell> result = function(arguments);
  if (!result.ok()) {
    sqlite3_result_error(context, result.status().message().c_str(), -1);
    return;
  }
  const OwnedCell& owned = result.value();
  switch (owned.cell.kind) {
    case CellKind::kNull:
      sqlite3_result_null(context);
      break;
    case CellKind::kInteger:
      sqlite3_result_int64(context, owned.cell.integer);
      break;
    case CellKind::kReal:
      sqlite3_result_double(context, owned.cell.real);
      break;
    case CellKind::kText:
      sqlite3_result_text64(context, owned.text.data(), owned.text.size(),
                            SQLITE_TRANSIENT, SQLITE_UTF8);
      break;
  }
}

void PackRow(sqlite3_context* context, int count, sqlite3_value** values) {
  auto** packed = static_cast<std::string**>(
      sqlite3_aggregate_context(context, sizeof(std::string*)));
  if (packed == nullptr)
    return sqlite3_result_error_nomem(context);
  if (*packed == nullptr)
    *packed = new std::string;
  for (int i = 0; i < count; ++i) {
    const int64_t value = sqlite3_value_int64(values[i]);
    char bytes[sizeof(value)];
    memcpy(bytes, &value, sizeof(value));
    (*packed)->append(bytes, sizeof(value));
  }
}

void FinishPacking(sqlite3_context* context) {
  auto** packed = static_cast<std::string**>(sqlite3_aggregate_context(context, 0));
  if (packed == nullptr || *packed == nullptr)
    return sqlite3_result_zeroblob(context, 0);
  sqlite3_result_blob64(context, (*packed)->data(), (*packed)->size(), SQLITE_TRANSIENT);
  delete *packed;
  *packed = nullptr;
}

}  // namespace

Status WasCancelled() {
  return Status(StatusCode::kUnavailable, "cannot finish the query: it was cancelled");
}

void Statement::Finalize::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

size_t Statement::column_count() const {
  return static_cast<size_t>(sqlite3_column_count(statement_.get()));
}

std::string_view Statement::column_name(size_t column) const {
  return sqlite3_column_name(statement_.get(), static_cast<int>(column));
}

bool Statement::Bind(const std::string& name, const Cell& value) {
  const int at = sqlite3_bind_parameter_index(statement_.get(), ("$" + name).c_str());
  if (at == 0)
    return false;
  switch (value.kind) {
    case CellKind::kNull:
      return sqlite3_bind_null(statement_.get(), at) == SQLITE_OK;
    case CellKind::kInteger:
      return sqlite3_bind_int64(statement_.get(), at, value.integer) == SQLITE_OK;
    case CellKind::kReal:
      return sqlite3_bind_double(statement_.get(), at, value.real) == SQLITE_OK;
    case CellKind::kText:
      return sqlite3_bind_text64(statement_.get(), at, value.text.data(),
                                 value.text.size(), SQLITE_STATIC,
                                 SQLITE_UTF8) == SQLITE_OK;
  }
  return false;
}

std::string Statement::UnknownParameter(std::span<const std::string> known) const {
  const int count = sqlite3_bind_parameter_count(statement_.get());
  for (int at = 1; at <= count; ++at) {
    const char* const name = sqlite3_bind_parameter_name(statement_.get(), at);
    std::string text = name == nullptr ? "?" : name;
    if (std::ranges::none_of(known,
                             [&](const std::string& one) { return text == "$" + one; }))
      return text;
  }
  return {};
}

Result<bool> Statement::Step() {
  // The progress handler sees the flag only now and then, a short query never.
  if (cancelled_->load(std::memory_order_relaxed))
    return WasCancelled();
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW)
    return true;
  if (code == SQLITE_DONE)
    return false;
  return ErrorOf(sqlite3_db_handle(statement_.get()), code);
}

Cell Statement::At(size_t column) const {
  return CellOf(sqlite3_column_value(statement_.get(), static_cast<int>(column)));
}

Result<std::unique_ptr<Database>> Database::Create(uint64_t max_memory_bytes) {
  std::unique_ptr<Database> database(new Database);
  const int code = sqlite3_open_v2(
      ":memory:", &database->handle_,
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  if (code != SQLITE_OK)
    return Status(StatusCode::kUnavailable,
                  std::string("cannot start SQLite: ") + sqlite3_errstr(code));
  sqlite3_hard_heap_limit64(static_cast<sqlite3_int64>(max_memory_bytes));
  sqlite3* handle = database->handle_;
  sqlite3_exec(handle, CanMakeTemporaryFiles() ? kSortInFiles : kSortInMemory, nullptr,
               nullptr, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  for (const auto& [limit, value] : kLimits)
    sqlite3_limit(handle, limit, value);
  return database;
}

Database::~Database() {
  sqlite3_close_v2(handle_);
}

Status Database::AddFunction(TableFunction function) {
  Relation relation{function.name, {}, {}};
  for (const ColumnSpec& column : function.columns)
    relation.columns.push_back(column.name);
  for (const Parameter& parameter : function.parameters)
    relation.parameters.push_back(parameter.name);
  if (!relation.name.starts_with("__"))
    relations_.push_back(std::move(relation));
  if (prepare_)
    function.prepare = [this, prepare = prepare_] {
      return is_sealed_ ? prepare() : Status();
    };
  function.tell_missing = [this](const std::string& missing) { missing_ = missing; };
  return RegisterTableFunction(handle_, std::move(function));
}

Status Database::AddTable(std::string name, Table table) {
  auto shared = std::make_shared<const Table>(std::move(table));
  const Table& form = *shared;
  return AddTable(std::move(name), form, [shared = std::move(shared)] { return shared; });
}

Status Database::AddTable(std::string name,
                          const Table& form,
                          const std::function<std::shared_ptr<const Table>()>& find) {
  TableFunction function;
  function.name = std::move(name);
  function.columns = SpecOf(form);
  function.count_rows = [find] { return find()->row_count; };
  function.make = [find](std::span<const Cell>) -> Result<std::shared_ptr<const Table>> {
    return find();
  };
  return AddFunction(std::move(function));
}

Status Database::AddView(const std::string& name, const std::string& select) {
  const std::string sql = "CREATE TEMP VIEW " + name + " AS " + select;
  const int code = sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK)
    return ErrorOf(handle_, code).WithContext("view " + name);
  std::string_view rest;
  HPD_TRY_ASSIGN(Statement statement, Prepare(select, &rest));
  Relation relation{name, {}, {}};
  for (size_t i = 0; i < statement.column_count(); ++i)
    relation.columns.emplace_back(statement.column_name(i));
  relations_.push_back(std::move(relation));
  return {};
}

Status Database::AddScalar(const std::string& name,
                           size_t argument_count,
                           ScalarFunction function) {
  const int code = sqlite3_create_function_v2(
      handle_, name.c_str(), static_cast<int>(argument_count),
      SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS,
      new ScalarFunction(std::move(function)), RunScalar, nullptr, nullptr,
      [](void* pointer) { delete static_cast<ScalarFunction*>(pointer); });
  return code == SQLITE_OK ? Status() : ErrorOf(handle_, code);
}

Status Database::AddPackingAggregate(const std::string& name, size_t argument_count) {
  const int code =
      sqlite3_create_function_v2(handle_, name.c_str(), static_cast<int>(argument_count),
                                 SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS,
                                 nullptr, nullptr, PackRow, FinishPacking, nullptr);
  return code == SQLITE_OK ? Status() : ErrorOf(handle_, code);
}

Status Database::AddQueryFunction(const QueryFunction& function) {
  std::string_view rest;
  HPD_TRY_ASSIGN(const Statement statement, Prepare(function.select, &rest));
  const std::string prefix = "cannot create function " + function.name + ": ";
  if (!statement.has_sql() || statement.column_count() == 0)
    return Status(StatusCode::kInvalidArgument,
                  prefix + "what stands behind AS is no query");
  if (const std::string unknown = statement.UnknownParameter(function.parameters);
      !unknown.empty())
    return Status(StatusCode::kInvalidArgument,
                  prefix + "it has no argument " + unknown +
                      "; name those it has between its parentheses");
  return AddScalar(function.name, function.parameters.size(),
                   [this, function](std::span<const Cell> arguments) {
                     return Call(function, arguments);
                   });
}

// Compiled anew for each call: a function may be replaced, and call others.
Result<OwnedCell> Database::Call(const QueryFunction& function,
                                 std::span<const Cell> arguments) {
  constexpr int kMostCalls = 16;
  if (calls_ == kMostCalls)
    return Status(StatusCode::kInvalidArgument,
                  "cannot call function " + function.name +
                      ": functions call one another too deep");
  std::string_view rest;
  HPD_TRY_ASSIGN(Statement statement, Prepare(function.select, &rest));
  for (size_t i = 0; i < arguments.size(); ++i)
    statement.Bind(function.parameters[i], arguments[i]);
  ++calls_;
  const Result<bool> is_row = statement.Step();
  --calls_;
  if (!is_row.ok())
    return is_row.status();
  if (!is_row.value())
    return OwnedCell();
  const Cell cell = statement.At(0);
  if (cell.kind == CellKind::kText)
    return OwnedCell::Text(std::string(cell.text));
  return OwnedCell{cell, {}};
}

Status Database::Seal() {
  is_sealed_ = true;
  sqlite3_set_authorizer(handle_, Authorize, nullptr);
  sqlite3_progress_handler(handle_, kOperationsPerCancelCheck, CheckCancelled,
                           &cancelled_);
  return {};
}

Result<Statement> Database::Prepare(std::string_view sql, std::string_view* rest) {
  sqlite3_stmt* statement = nullptr;
  const char* tail = nullptr;
  if (sql.size() > INT32_MAX)
    return Status(StatusCode::kInvalidArgument, "cannot run the query: it is too long");
  missing_.clear();
  const int code = sqlite3_prepare_v2(handle_, sql.data(), static_cast<int>(sql.size()),
                                      &statement, &tail);
  if (code == SQLITE_ERROR && !missing_.empty() &&
      strcmp(sqlite3_errmsg(handle_), kNoPlan) == 0)
    return Status(StatusCode::kInvalidArgument, "cannot run the query: " + missing_);
  if (code != SQLITE_OK)
    return ErrorOf(handle_, cancelled_.load() ? SQLITE_INTERRUPT : code);
  *rest = sql.substr(static_cast<size_t>(tail - sql.data()));
  return Statement(statement, &cancelled_);
}

}  // namespace heapprofd
