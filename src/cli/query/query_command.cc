#include "cli/query/query_command.h"

#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <string_view>

#include "base/print.h"
#include "cli/open_traces.h"
#include "cli/query/query_shell.h"
#include "cli/record/options.h"

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

}  // namespace

int RunQueryCommand(QueryDialect dialect, const std::vector<std::string>& arguments) {
  const char* const program = ProgramName(dialect);
  const auto fail = [program](const Status& status, int code) {
    fflush(stdout);
    Print(stderr, "%s: %s\n", program, status.message().c_str());
    return code;
  };
  Result<QueryOptions> options = ParseQueryOptions(dialect, arguments);
  if (!options.ok())
    return fail(options.status(), options.status().code() == StatusCode::kInvalidArgument
                                      ? kExitUsage
                                      : kExitFailure);
  if (options.value().show_help) {
    PrintText(QueryHelp(dialect));
    return kExitOk;
  }
  if (options.value().show_version) {
    Print(stdout, "%s %s\n", program, HPD_VERSION);
    return kExitOk;
  }
  Result<std::unique_ptr<TraceDatabase>> database =
      OpenTraces(options.value().traces, program, [program](const std::string& warning) {
        Print(stderr, "%s: %s\n", program, warning.c_str());
      });
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
