// `heap_profile query` and `trace_processor_shell`: exit code 130 when Ctrl-C stopped a
// query.
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string_view>
#include <utility>

#include "base/print.h"
#include "cli/command_table.h"
#include "cli/memory_budget.h"
#include "cli/open_traces.h"
#include "cli/query/query_options.h"
#include "cli/query/query_shell.h"

namespace heapprofd {
namespace {

constexpr int kExitInterrupted = kExitSignalBase + SIGINT;

std::atomic<TraceDatabase*> interrupted_database = nullptr;

// A query looks whether it was cancelled between two steps of SQLite's, of which a single
// one - a sort, a function of a long text - can take minutes.
constexpr itimerval kPatience = {.it_interval = {}, .it_value = {0, 500'000}};

bool IsCancelled(TraceDatabase* database) {
  return database != nullptr && database->cancel_flag() && database->is_running();
}

extern "C" void CancelQuery(int signal) {
  TraceDatabase* const database = interrupted_database.load();
  if (database == nullptr)
    return;
  if (IsCancelled(database)) {
    std::signal(signal, SIG_DFL);
    raise(signal);
  }
  database->cancel_flag() = true;
  setitimer(ITIMER_REAL, &kPatience, nullptr);
}

extern "C" void GiveUpQuery(int /*signal*/) {
  constexpr std::string_view kMessage = "the query did not stop when it was cancelled\n";
  if (!IsCancelled(interrupted_database.load()))
    return;
  (void)!write(STDERR_FILENO, kMessage.data(), kMessage.size());
  _exit(kExitInterrupted);
}

void CatchInterrupts(TraceDatabase& database) {
  interrupted_database = &database;
  struct sigaction action = {};
  action.sa_handler = CancelQuery;
  sigaction(SIGINT, &action, nullptr);
  action.sa_handler = GiveUpQuery;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
}

const char* ProgramName(QueryDialect dialect) {
  return dialect == QueryDialect::kHeapProfile ? "heap_profile query"
                                               : "trace_processor_shell";
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

Result<int> RunQuery(QueryDialect dialect, QueryOptions& options) {
  const std::string program = ProgramName(dialect);
  HPD_TRY(CheckQueryOptions(dialect, options));
  HPD_TRY(UseMemoryBudget(options.memory_budget));
  HPD_TRY_ASSIGN(
      const std::unique_ptr<TraceDatabase> database,
      OpenTraces(options.traces, program, [&program](const std::string& warning) {
        Print(stderr, "%s: %s\n", program.c_str(), warning.c_str());
      }));
  CatchInterrupts(*database);
  Status status = RunQueries(*database, options);
  const bool is_cancelled = database->cancel_flag();
  interrupted_database = nullptr;
  if (status.ok() && fflush(stdout) != 0)
    status = Status::FromErrno("cannot write the result", errno);
  if (status.ok())
    return static_cast<int>(kExitOk);
  Fail(status, program.c_str());
  return is_cancelled ? kExitInterrupted : static_cast<int>(kExitFailure);
}

CommandLine LineOf(QueryDialect dialect, CommandText text) {
  const auto options = std::make_shared<QueryOptions>();
  if (dialect == QueryDialect::kTraceProcessorShell)
    options->format = ResultFormat::kPerfettosCsv;
  text.epilogue = kReadableFiles +
                  std::string(
                      "Heap dumps of Java (hprof) are read as well. Several files are "
                      "queried together.\n"
                      "docs/sql.md describes the tables and functions. Ctrl-C stops the "
                      "running query.\n");
  return {.text = std::move(text),
          .flags = QueryFlags(*options),
          .take_word = TakeWords(&options->traces),
          .run = [dialect, options] { return RunQuery(dialect, *options); },
          .version_letter = 'v'};
}

}  // namespace

CommandLine QueryCommandLine() {
  return LineOf(QueryDialect::kHeapProfile,
                {.name = "heap_profile query",
                 .summary = "Asks heap profiles questions in SQL.",
                 .usage = "heap_profile query [OPTIONS] TRACE... \"SQL\"\n"
                          "heap_profile query [OPTIONS] TRACE      (a shell)"});
}

CommandLine TraceProcessorShellLine() {
  return LineOf(QueryDialect::kTraceProcessorShell,
                {.name = "trace_processor_shell",
                 .summary = "Asks traces questions in SQL, on a command line compatible "
                            "with Perfetto's.",
                 .usage = "trace_processor_shell [OPTIONS] TRACE..."});
}

}  // namespace heapprofd
