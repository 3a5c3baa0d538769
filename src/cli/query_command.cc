#include "cli/query_command.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>

#include "cli/load_trace.h"
#include "cli/options.h"
#include "cli/query_shell.h"
#include "import/import_file.h"
#include "query/trace_database.h"

namespace heapprofd {
namespace {

constexpr int kExitInterrupted = 128 + SIGINT;

std::atomic<TraceDatabase*> interrupted_database = nullptr;

// The second Ctrl-C of a query that does not end by the first one ends the program: a
// single step of SQLite's can take long.
extern "C" void CancelQuery(int signal) {
  TraceDatabase* const database = interrupted_database.load();
  if (database == nullptr || !database->cancel_flag().exchange(true) ||
      !database->is_running())
    return;
  std::signal(signal, SIG_DFL);
  raise(signal);
}

void CatchInterrupts(TraceDatabase& database) {
  interrupted_database = &database;
  struct sigaction action = {};
  action.sa_handler = CancelQuery;
  sigaction(SIGINT, &action, nullptr);
}

const char* ProgramName(QueryDialect dialect) {
  return dialect == QueryDialect::kHeapProfile ? "heap_profile query"
                                               : "trace_processor_shell";
}

Result<std::unique_ptr<TraceDatabase>> OpenTraces(const QueryOptions& options,
                                                  const char* program) {
  ReturnFreedMemory();
  auto trace = std::make_unique<ImportedTrace>();
  auto builder = std::make_unique<TraceBuilder>(trace.get());
  builder->DeferDecoding();
  const auto warn = [program](const std::string& warning) {
    fprintf(stderr, "%s: %s\n", program, warning.c_str());
  };
  std::vector<std::string> warnings;
  HPD_TRY(ImportFiles(options.traces, *builder, &warnings));
  std::for_each(warnings.begin(), warnings.end(), warn);
  HPD_TRY(SymbolizeLoaded(program, *builder));
  HPD_TRY(DeobfuscateLoaded(program, *builder));
  return TraceDatabase::Create(std::move(trace), {std::move(builder), warn});
}

// Of standard input, when it is not a terminal.
Status RunStandardInput(TraceDatabase& database, ResultSink& sink) {
  std::string script;
  char block[4096];
  size_t count = 0;
  while ((count = fread(block, 1, sizeof(block), stdin)) > 0)
    script.append(block, count);
  return database.Run(script, sink);
}

Status RunQueries(TraceDatabase& database, const QueryOptions& options) {
  const std::unique_ptr<ResultSink> sink = MakeResultPrinter(options.format, stdout);
  for (const std::string& script : options.scripts)
    HPD_TRY(database.Run(script, *sink));
  if (!options.interactive)
    return {};
  if (isatty(STDIN_FILENO) == 0)
    return RunStandardInput(database, *sink);
  return RunQueryShell(database, options.format);
}

}  // namespace

int RunQueryCommand(QueryDialect dialect, const std::vector<std::string>& arguments) {
  const char* const program = ProgramName(dialect);
  const auto fail = [program](const Status& status, int code) {
    fflush(stdout);
    fprintf(stderr, "%s: %s\n", program, status.message().c_str());
    return code;
  };
  Result<QueryOptions> options = ParseQueryOptions(dialect, arguments);
  if (!options.ok())
    return fail(options.status(), options.status().code() == StatusCode::kInvalidArgument
                                      ? kExitUsage
                                      : kExitFailure);
  if (options.value().show_help) {
    fputs(QueryHelp(dialect).c_str(), stdout);
    return kExitOk;
  }
  if (options.value().show_version) {
    printf("%s %s\n", program, HPD_VERSION);
    return kExitOk;
  }
  Result<std::unique_ptr<TraceDatabase>> database = OpenTraces(options.value(), program);
  if (!database.ok())
    return fail(database.status(), kExitFailure);
  CatchInterrupts(*database.value());
  Status status = RunQueries(*database.value(), options.value());
  const bool is_cancelled = database.value()->cancel_flag();
  interrupted_database = nullptr;
  if (status.ok() && fflush(stdout) != 0)
    status = Status::FromErrno("cannot write the result", errno);
  if (!status.ok())
    return fail(status, is_cancelled ? kExitInterrupted : kExitFailure);
  return kExitOk;
}

}  // namespace heapprofd
