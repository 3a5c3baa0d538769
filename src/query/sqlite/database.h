// SQLite as a read-only engine over our tables: it holds no data of its own, loads
// nothing, writes nothing but nameless temporary files for large sorts, and a query can
// be stopped at any time.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "query/sqlite/query_function.h"
#include "query/sqlite/table.h"
#include "query/sqlite/virtual_table.h"

struct sqlite3;
struct sqlite3_stmt;

namespace heapprofd {

// What a scalar function returns: a cell that owns its text.
struct OwnedCell {
  Cell cell;
  std::string text;

  static OwnedCell Text(std::string value) {
    OwnedCell owned{{CellKind::kText, 0, 0, {}}, std::move(value)};
    return owned;
  }
};

using ScalarFunction = std::function<Result<OwnedCell>(std::span<const Cell>)>;

// Set from any thread or signal handler to stop the running query.
using CancelFlag = std::atomic<bool>;

// kUnavailable, of what has found its flag set.
Status WasCancelled();

// One compiled statement and its position in the result.
class Statement {
 public:
  Statement() = default;

  // False when the text held nothing but blanks and comments.
  bool has_sql() const { return statement_ != nullptr; }

  size_t column_count() const;
  std::string_view column_name(size_t column) const;

  // Gives `$name` its value, which must live as long as this. False: it has no such
  // parameter.
  bool Bind(const std::string& name, const Cell& value);

  // The first `$name` that none of `known` is; empty: there is none.
  std::string UnknownParameter(std::span<const std::string> known) const;

  // Moves to the next row; false at the end. kUnavailable when cancelled.
  Result<bool> Step();

  // Of the current row; texts are valid until the next Step().
  Cell At(size_t column) const;

 private:
  friend class Database;

  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };

  Statement(sqlite3_stmt* statement, const CancelFlag* cancelled)
      : statement_(statement), cancelled_(cancelled) {}

  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  const CancelFlag* cancelled_ = nullptr;
};

class Database {
 public:
  // `max_memory_bytes` bounds what SQLite allocates in this process, 0: no bound.
  static Result<std::unique_ptr<Database>> Create(uint64_t max_memory_bytes);

  ~Database();

  // Fills the database. Not after Seal().
  Status AddFunction(TableFunction function);
  Status AddTable(std::string name, Table table);

  // Of a table that changes: `find` gives what it is when a query begins. `form` has its
  // columns.
  Status AddTable(std::string name,
                  const Table& form,
                  const std::function<std::shared_ptr<const Table>()>& find);

  // From here on all that is added needs `prepare`: it is called before a query that
  // reads it is planned, once the database is sealed.
  void PrepareWith(std::function<Status()> prepare) { prepare_ = std::move(prepare); }

  Status AddView(const std::string& name, const std::string& select);
  Status AddScalar(const std::string& name,
                   size_t argument_count,
                   ScalarFunction function);

  // (callsite, value, value, ...) of every row of the group, as a blob of int64.
  Status AddPackingAggregate(const std::string& name, size_t argument_count);

  // From here on only reading is possible, and AddQueryFunction().
  Status Seal();

  // Instead of one that has the same name and as many parameters.
  Status AddQueryFunction(const QueryFunction& function);

  // Compiles the first statement of `sql`; `*rest` is what follows it.
  Result<Statement> Prepare(std::string_view sql, std::string_view* rest);

  CancelFlag& cancel_flag() { return cancelled_; }

  // A table or function by its names, for help and completion.
  struct Relation {
    std::string name;
    std::vector<std::string> columns;
    std::vector<std::string> parameters;
  };

  // Everything that was added, but what begins with "__".
  const std::vector<Relation>& relations() const { return relations_; }

 private:
  Database() = default;

  Result<OwnedCell> Call(const QueryFunction& function, std::span<const Cell> arguments);

  sqlite3* handle_ = nullptr;
  std::vector<Relation> relations_;
  std::function<Status()> prepare_;
  bool is_sealed_ = false;
  std::string missing_;  // argument of a function, in words: of the last Prepare()
  int calls_ = 0;        // of query functions, one inside the other
  CancelFlag cancelled_ = false;
};

}  // namespace heapprofd
