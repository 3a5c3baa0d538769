// A trace that can be asked questions in SQL: every table, view and function over one
// ImportedTrace. docs/sql.md lists them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "query/content_rows.h"
#include "query/sqlite/database.h"
#include "query/sqlite/perfetto_sql.h"
#include "query/trace_tables.h"
#include "tables/imported_trace.h"
#include "tables/trace_builder.h"

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

// What is left to be done of a trace whose decoding was deferred
// (TraceBuilder::DeferDecoding), and what was left in heap dumps: the first query that
// needs it does it.
struct UndecodedPart {
  std::unique_ptr<TraceBuilder> builder;
  std::function<void(const std::string&)> warn;  // takes what TraceWarnings would say,
  // and what looking into contents has shown
  ContentsOfGraphs contents = {};
};

class TraceDatabase {
 public:
  // Takes the trace: tables point into it.
  static Result<std::unique_ptr<TraceDatabase>> Create(
      std::unique_ptr<const ImportedTrace> trace, UndecodedPart undecoded = {});

  const ImportedTrace& trace() const { return *trace_; }

  // Decodes what was left to be decoded, for who reads trace(). kUnavailable when
  // cancelled.
  Status Decode();

  // The same, as far as stacks go: from then on trace().stacks and what they are of do
  // not change, but by UseCallsites().
  Status DecodeStacks();

  // Decode(), and whole stacks (TraceBuilder::ReadWholeStacks) become callsites: without
  // them tables and functions that tell of callsites are empty or wrong. When it was
  // cancelled they are still whole.
  Status UseCallsites();

  // Runs all statements of a script.
  Status Run(std::string_view script, ResultSink& sink);

  // True inside of Run(), for signal handlers.
  bool is_running() const { return is_running_; }

  const std::vector<Database::Relation>& relations() const {
    return database_->relations();
  }

  // Set it to stop the running query; clear it before the next.
  CancelFlag& cancel_flag() { return database_->cancel_flag(); }

 private:
  TraceDatabase() = default;

  Status AddTables();
  Status AddTraceTables(bool need_decoding);
  Status RunScript(std::string_view script, ResultSink& sink);
  Status RunStatement(std::string_view sql, ResultSink& sink);
  Status CheckContents();

  struct TraceTable {
    std::string name;
    std::shared_ptr<const Table> table;
  };

  static std::vector<TraceTable> TablesOf(const ImportedTrace& trace);

  std::unique_ptr<const ImportedTrace> trace_;
  UndecodedPart undecoded_;  // behind the trace
  bool is_decoded_ = false;
  std::vector<std::string> told_warnings_;  // before decoding
  uint64_t unnamed_classes_ = 0;            // of the contents, as was told last
  std::vector<TraceTable> tables_;          // as the trace is now
  std::unique_ptr<Database> database_;      // behind the trace: its tables point there
  PerfettoSql language_;
  std::atomic<bool> is_running_ = false;
};

}  // namespace heapprofd
