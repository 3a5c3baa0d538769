#include "query/trace_database.h"

#include <unistd.h>

#include <algorithm>
#include <string>

#include "query/flame_functions.h"
#include "query/trace_tables.h"
#include "symbolize/demangle.h"
#include "tables/decode_queue.h"

namespace heapprofd {
namespace {

// Half of the machine's memory: a query that wants more is a mistake.
uint64_t MemoryLimit() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_size = sysconf(_SC_PAGESIZE);
  return pages <= 0 || page_size <= 0
             ? 0
             : static_cast<uint64_t>(pages) / 2 * static_cast<uint64_t>(page_size);
}

// NULL when the name is not a mangled one, as Perfetto's function of this name.
Result<OwnedCell> DemangleFunction(std::span<const Cell> arguments) {
  const std::string demangled = Demangle(arguments[0].text);
  if (arguments[0].kind != CellKind::kText || demangled == arguments[0].text)
    return OwnedCell();
  return OwnedCell::Text(demangled);
}

Status AddTimes(const ImportedTrace& trace, Database* database) {
  int64_t start = trace.dumps.empty() ? 0 : INT64_MAX;
  int64_t end = trace.dumps.empty() ? 0 : INT64_MIN;
  for (const ImportedDump& dump : trace.dumps) {
    start = std::min({start, dump.ts, dump.start_ts.value_or(dump.ts)});
    end = std::max(end, dump.ts);
  }
  const auto constant = [database](const char* name, int64_t value) {
    return database->AddScalar(name, 0,
                               [value](std::span<const Cell>) -> Result<OwnedCell> {
                                 return OwnedCell{Cell::Integer(value), {}};
                               });
  };
  HPD_TRY(constant("trace_start", start));
  HPD_TRY(constant("trace_end", end));
  return constant("trace_dur", end - start);
}

// Tables that callstacks and samples add nothing to.
bool IsKnownAtOpening(std::string_view table) {
  constexpr std::string_view kTables[] = {"process",
                                          "thread",
                                          "metadata",
                                          "package_list",
                                          "profiler_smaps",
                                          "process_memory",
                                          "heap_profile",
                                          "stack_profile_mapping",
                                          "stack_profile_frame",
                                          "stack_profile_symbol",
                                          "heap_profile_quality",
                                          "heap_profile_unsampled_children"};
  return table.starts_with("heap_graph") || table.starts_with("android_heap_graph") ||
         std::find(std::begin(kTables), std::end(kTables), table) != std::end(kTables);
}

// Each dump that changed something as an interval: what was allocated in it, what of that
// was not freed in it, and by how much the heap changed. A dump that does not tell when
// its interval began continues the one before it.
constexpr char kIntervals[] = R"(
  WITH stacks AS (
    SELECT upid, heap_name, ts, min(id) AS id, sum(count) AS count, sum(size) AS size,
      sum(max(size, 0)) AS allocated
    FROM heap_profile_allocation
    GROUP BY upid, heap_name, ts, callsite_id),
  starts AS (
    SELECT upid, heap_name, ts_end, min(ts) AS ts
    FROM heap_profile
    GROUP BY upid, heap_name, ts_end),
  dumps AS (
    SELECT min(id) AS id, upid, heap_name, stacks.ts AS ts_end, starts.ts AS start,
      sum(iif(count > 0, size, 0)) AS retained, sum(allocated) AS allocated,
      sum(size) AS delta
    FROM stacks JOIN starts USING (upid, heap_name)
    WHERE stacks.ts = ts_end
    GROUP BY upid, heap_name, ts_end),
  intervals AS (
    SELECT *, iif(start < ts_end, start, min(ts_end, 1 + lag(ts_end, 1, trace_start())
        OVER (PARTITION BY upid, heap_name ORDER BY ts_end))) AS ts
    FROM dumps)
  SELECT id, upid, heap_name, ts, ts_end - ts AS dur, retained, allocated, delta
  FROM intervals)";

}  // namespace

std::vector<TraceDatabase::TraceTable> TraceDatabase::TablesOf(
    const ImportedTrace& trace) {
  NamedTables tables;
  AddStackTables(trace, &tables);
  AddHeapProfileTables(trace, &tables);
  AddHeapGraphTables(trace, &tables);
  AddSystemTables(trace, &tables);
  AddOwnTables(trace, &tables);
  AddLabelTable(trace, &tables);
  AddAllocatorTable(trace, &tables);
  std::vector<TraceTable> shared;
  for (auto& [name, table] : tables)
    shared.push_back({name, std::make_shared<const Table>(std::move(table))});
  return shared;
}

Result<std::unique_ptr<TraceDatabase>> TraceDatabase::Create(
    std::unique_ptr<const ImportedTrace> trace, UndecodedPart undecoded) {
  std::unique_ptr<TraceDatabase> self(new TraceDatabase);
  self->trace_ = std::move(trace);
  self->undecoded_ = std::move(undecoded);
  self->told_warnings_ = TraceWarnings(self->trace_->stats);
  self->tables_ = TablesOf(*self->trace_);
  HPD_TRY_ASSIGN(self->database_, Database::Create(MemoryLimit()));
  HPD_TRY(self->AddTables());
  return self;
}

Status TraceDatabase::DecodeStacks() {
  if (undecoded_.builder != nullptr &&
      !undecoded_.builder->decoding().RunStacks(cancel_flag()))
    return WasCancelled();
  return {};
}

Status TraceDatabase::Decode() {
  if (undecoded_.builder == nullptr || is_decoded_)
    return {};
  if (!undecoded_.builder->decoding().Finish(*undecoded_.builder, cancel_flag()))
    return WasCancelled();
  is_decoded_ = true;
  if (!undecoded_.builder->has_whole_stacks())
    undecoded_.builder.reset();
  tables_ = TablesOf(*trace_);
  for (const std::string& warning : TraceWarnings(trace_->stats)) {
    if (undecoded_.warn && std::find(told_warnings_.begin(), told_warnings_.end(),
                                     warning) == told_warnings_.end())
      undecoded_.warn(warning);
  }
  return {};
}

Status TraceDatabase::UseCallsites() {
  HPD_TRY(Decode());
  if (undecoded_.builder == nullptr)
    return {};
  if (!undecoded_.builder->UseCallsites(cancel_flag()))
    return WasCancelled();
  undecoded_.builder.reset();
  tables_ = TablesOf(*trace_);
  return {};
}

Status TraceDatabase::AddTraceTables(bool need_decoding) {
  for (size_t i = 0; i < tables_.size(); ++i) {
    if (IsKnownAtOpening(tables_[i].name) != need_decoding)
      HPD_TRY(database_->AddTable(tables_[i].name, *tables_[i].table,
                                  [this, i] { return tables_[i].table; }));
  }
  return {};
}

Status TraceDatabase::AddTables() {
  HPD_TRY(AddTraceTables(/*need_decoding=*/false));
  database_->PrepareWith([this] { return Decode(); });
  HPD_TRY(AddTraceTables(/*need_decoding=*/true));
  HPD_TRY(AddPerfettoFunctions(*trace_, database_.get()));
  HPD_TRY(AddHeapGraphValues(*trace_, undecoded_.contents, database_.get()));
  HPD_TRY(AddOwnFunctions(*trace_, database_.get()));
  HPD_TRY(database_->AddScalar("demangle", 1, DemangleFunction));
  HPD_TRY(AddTimes(*trace_, database_.get()));
  HPD_TRY(database_->AddView("_android_heap_profile_intervals", kIntervals));
  return database_->Seal();
}

Status TraceDatabase::Run(std::string_view script, ResultSink& sink) {
  is_running_ = true;
  Status status = RunScript(script, sink);
  is_running_ = false;
  return status;
}

Status TraceDatabase::RunScript(std::string_view script, ResultSink& sink) {
  ScriptPart part = SplitScript(script);
  while (!part.statement.empty()) {
    HPD_TRY_ASSIGN(const Translation translation, language_.Translate(part.statement));
    for (const std::string& sql : translation.statements)
      HPD_TRY(RunStatement(sql, sink));
    if (translation.function)
      HPD_TRY(database_->AddQueryFunction(*translation.function));
    part = SplitScript(part.rest);
  }
  return {};
}

Status TraceDatabase::RunStatement(std::string_view sql, ResultSink& sink) {
  std::string_view rest;
  HPD_TRY_ASSIGN(Statement statement, database_->Prepare(sql, &rest));
  if (!statement.has_sql())
    return {};
  const bool has_result = statement.column_count() > 0;
  if (has_result)
    HPD_TRY(sink.BeginResult(statement));
  while (true) {
    HPD_TRY_ASSIGN(const bool is_row, statement.Step());
    if (!is_row) {
      HPD_TRY(CheckContents());
      return has_result ? sink.EndResult() : Status();
    }
    HPD_TRY(sink.AddRow(statement));
  }
}

// A file that rows were looked up in may have become shorter meanwhile.
Status TraceDatabase::CheckContents() {
  uint64_t unnamed = 0;
  for (const std::shared_ptr<ObjectContents>& contents : undecoded_.contents) {
    HPD_TRY(contents->Check());
    unnamed += contents->unnamed_classes();
  }
  if (unnamed > unnamed_classes_ && undecoded_.warn)
    undecoded_.warn(std::to_string(unnamed) +
                    (unnamed == 1 ? " class is" : " classes are") +
                    " missing in the names of their fields, which would take more than "
                    "64 MiB");
  unnamed_classes_ = unnamed;
  return {};
}

}  // namespace heapprofd
