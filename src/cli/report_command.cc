#include "cli/report_command.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "base/clock.h"
#include "base/print.h"
#include "base/text.h"
#include "cli/flag_values.h"
#include "cli/memory_budget.h"
#include "cli/open_traces.h"
#include "cli/output_file.h"
#include "cli/record/signals.h"
#include "cli/results/report_warnings.h"
#include "cli/run_command.h"
#include "cli/text_layout.h"
#include "report/report_data.h"
#include "report/report_page.h"

namespace heapprofd {
namespace {

constexpr char kProgram[] = "heap_profile report";
constexpr char kUsualName[] = "report.html";
constexpr uint64_t kPatienceNs = 300'000'000'000;  // of a recording that is over

struct ReportArguments {
  std::vector<std::string> files;
  std::string output;
  bool quiet = false;
  uint64_t memory_budget = 0;  // bytes; 0: there is none
};

std::vector<Flag> ReportFlags(ReportArguments& arguments) {
  const std::string group = "options";
  return {
      {.letter = 'o',
       .name = "output",
       .value_name = "FILE",
       .help = "Write the page here; - writes to standard output. Default: report.html.",
       .group = group,
       .apply = TextValue("--output", &arguments.output)},
      {.letter = 'q',
       .name = "quiet",
       .help = "Print nothing but errors.",
       .group = group,
       .apply = Switch(&arguments.quiet)},
      MemoryBudgetFlag(group, &arguments.memory_budget),
  };
}

Status WritePage(const ReportArguments& arguments) {
  if (arguments.files.empty())
    return Invalid(
        "cannot report: no file is named; for example: heap_profile report raw-trace");
  const std::string path = arguments.output.empty() ? kUsualName : arguments.output;
  if (arguments.output.empty() && access(kUsualName, F_OK) == 0)
    return Invalid(
        "cannot write report.html: it is there already; -o report.html "
        "replaces it");
  HPD_TRY(UseMemoryBudget(arguments.memory_budget));
  ReportOptions options = {.version = HPD_VERSION, .files = arguments.files};
  const auto warn = [&](const std::string& warning) {
    options.warnings.push_back(warning);
    if (!arguments.quiet)
      Print(stderr, "%s: %s\n", kProgram, warning.c_str());
  };
  HPD_TRY_ASSIGN(const std::unique_ptr<TraceDatabase> database,
                 OpenTraces(arguments.files, kProgram, warn, StackForm::kWhole,
                            /*keeps_contents=*/false));
  HPD_TRY(WriteReport(*database, options, path));
  if (!arguments.quiet && path != "-")
    PrintReportPath(path);
  return {};
}

}  // namespace

CommandLine ReportCommandLine() {
  const auto arguments = std::make_shared<ReportArguments>();
  return {
      .text = {.name = kProgram,
               .summary = "Shows heap profiles in a page for a browser.",
               .usage = "heap_profile report [-o FILE] FILE...",
               .epilogue =
                   kReadableFiles +
                   std::string("The page is one file that holds all of its data and asks "
                               "no network\nfor anything. Of two files it tells what "
                               "changed from the first to the second.\nA heap dump of "
                               "Java (hprof) is shown by classes.\n")},
      .flags = ReportFlags(*arguments),
      .take_word = TakeWords(&arguments->files),
      .run = [arguments]() -> Result<int> {
        HPD_TRY(WritePage(*arguments));
        return static_cast<int>(kExitOk);
      }};
}

Status WriteReport(TraceDatabase& database,
                   ReportOptions options,
                   const std::string& path) {
  HPD_TRY(database.Decode());
  TellOfRecordings(database.trace(), &options);
  HPD_TRY_ASSIGN(const std::string data, EncodeReport(database, options));
  // Before there is a file: whoever is ended meanwhile leaves none behind.
  const std::string page = ReportPage(data);
  HPD_TRY_ASSIGN(OutputFile file, OutputFile::Create(path));
  HPD_TRY(file.Write(page));
  return file.Finish();
}

std::string ReportPathBeside(const std::string& trace_path) {
  return trace_path.substr(0, trace_path.rfind('/') + 1) + kUsualName;
}

void PrintReportPath(const std::string& path) {
  const std::string line =
      FileLine("report", path, "(open in a browser)", TerminalWidth(STDERR_FILENO));
  Print(stderr, "%s", line.c_str());
}

void PrintNoReport(const std::string& cause,
                   bool has_whole_trace,
                   const std::string& trace_path) {
  Print(stderr,
        "heap_profile: cannot make the report: %s; %sheap_profile report %s makes it\n",
        cause.c_str(), has_whole_trace ? "the trace is complete, " : "",
        Printable(trace_path).c_str());
}

// Runs this program again.
void MakeReportBeside(const std::string& trace_path, bool has_whole_trace, bool quiet) {
  struct stat trace {};

  if (stat(trace_path.c_str(), &trace) != 0 || trace.st_size == 0)
    return;  // what went wrong is said
  const std::string path = ReportPathBeside(trace_path);
  const SteeringSignals signals;
  const ScopedFd stop_requests = StopRequests();
  sigset_t none;
  sigemptyset(&none);
  const uint64_t end_ns = MonotonicNs() + kPatienceNs;
  const auto is_over = [&] {
    pollfd request = {.fd = stop_requests.get(), .events = POLLIN, .revents = 0};
    return MonotonicNs() >= end_ns || poll(&request, 1, 0) > 0;
  };
  const Result<CommandResult> result =
      RunCommand({"/proc/self/exe", "report", "-q", "-o", path, "--", trace_path}, none,
                 {.fd = stop_requests.get(), .is_over = is_over});
  if (result.ok() && result.value().exit_code == 0) {
    if (!quiet)
      PrintReportPath(path);
    return;
  }
  const bool was_ended = !result.ok() && result.status().code() == StatusCode::kTryAgain;
  PrintNoReport(was_ended     ? "it took too long or was interrupted"
                : result.ok() ? "a line above says why, or the system has ended it"
                              : result.status().message(),
                has_whole_trace, trace_path);
}

}  // namespace heapprofd
