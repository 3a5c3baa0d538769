// A trace that can be asked questions in SQL: every table, view and function over one
// ImportedTrace. docs/sql.md lists them.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "base/status.h"
#include "query/database.h"
#include "trace/imported_trace.h"

namespace heapprofd {

// Receives the result of a script, statement by statement. A Status that is not ok ends
// the query and is returned by it.
class ResultSink {
 public:
  virtual ~ResultSink() = default;

  // Before the first row of every statement that has columns.
  virtual Status BeginResult(const Statement& statement) = 0;
  virtual Status AddRow(const Statement& statement) = 0;
  virtual Status EndResult() = 0;
};

class TraceDatabase {
 public:
  // Takes the trace: tables point into it.
  static Result<std::unique_ptr<TraceDatabase>> Create(
      std::unique_ptr<const ImportedTrace> trace);

  const ImportedTrace& trace() const { return *trace_; }

  // Runs all statements of a script.
  Status Run(std::string_view script, ResultSink& sink);

  const std::vector<Database::Relation>& relations() const {
    return database_->relations();
  }

  // Set it to stop the running query; clear it before the next.
  CancelFlag& cancel_flag() { return database_->cancel_flag(); }

 private:
  TraceDatabase() = default;

  Status AddTables();
  Status RunStatement(std::string_view sql, ResultSink& sink);

  std::unique_ptr<const ImportedTrace> trace_;
  std::unique_ptr<Database> database_;  // last: its tables point into the trace
};

}  // namespace heapprofd
