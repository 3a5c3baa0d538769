#include "cli/report_command.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>

#include "base/print.h"
#include "base/text.h"
#include "cli/command_table.h"
#include "cli/flag_values.h"
#include "cli/memory_budget.h"
#include "cli/open_traces.h"
#include "cli/output_file.h"
#include "cli/record/signals.h"
#include "cli/results/recording_results.h"
#include "cli/results/report_warnings.h"
#include "cli/text_layout.h"
#include "cli/view/embedded_source.h"
#include "import/import_file.h"
#include "import/perfetto/byte_source.h"
#include "report/report_data.h"
#include "report/report_page.h"
#include "symbolize/worker_pool.h"

namespace heapprofd {
namespace {

constexpr char kProgram[] = "heap_profile report";
constexpr char kUsualName[] = "report.html";
constexpr uint32_t kReportSeconds = 300;  // of a recording that is over

struct ReportArguments {
  std::vector<std::string> files;
  std::string output;
  bool quiet = false;
  bool with_source = false;
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
      {.name = "embed-source",
       .help = "Put source files into the page, those with most memory.",
       .details =
           "Of the end and the peak of each heap, where they are at hand under the "
           "names that the file has for them; at most 8 MiB. Who gets the page can "
           "read them.",
       .group = group,
       .apply = Switch(&arguments.with_source)},
      MemoryBudgetFlag(group, &arguments.memory_budget),
  };
}

// The page; it fills in what the options leave open.
Result<std::string> MakeReport(TraceDatabase& database, ReportOptions& options) {
  HPD_TRY_ASSIGN(BegunOrder order, BeginOrder(database));
  HPD_TRY(database.Decode());
  TellOfRecordings(database.trace(), &options);
  HPD_TRY_ASSIGN(const std::string data,
                 EncodeReport(database, options, std::move(order)));
  return ReportPage(data, {.has_objects = !database.trace().heap_graph.graphs.empty()});
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
  ReturnFreedMemory();
  ReportOptions options = {.version = HPD_VERSION, .files = arguments.files};
  const auto warn = [&](const std::string& warning) {
    options.warnings.push_back(warning);
    if (!arguments.quiet)
      Print(stderr, "%s: %s\n", kProgram, warning.c_str());
  };
  HPD_TRY_ASSIGN(const std::unique_ptr<TraceDatabase> database,
                 OpenTraces(arguments.files, kProgram, warn, StackForm::kWhole,
                            /*keeps_contents=*/false));
  if (arguments.with_source) {
    HPD_TRY_ASSIGN(options.source, EmbeddedSource(*database));
  }
  // Before there is a file: whoever is ended meanwhile leaves none behind.
  HPD_TRY_ASSIGN(const std::string page, MakeReport(*database, options));
  HPD_TRY_ASSIGN(OutputFile file, OutputFile::CreateNamed(path));
  HPD_TRY(file.Write(page));
  HPD_TRY(file.Finish());
  if (!arguments.quiet && path != "-")
    PrintReportPath(path);
  return {};
}

// In a process of its own.
Status WritePageBeside(const FilePlace& trace, const FilePlace& page) {
  ScopedFd fd(open(trace.at.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid())
    return Status::FromErrno("cannot open " + trace.path, errno);
  FileSource source(std::move(fd), trace.path);
  ReturnFreedMemory();
  ReportOptions options = {.version = HPD_VERSION, .files = {trace.path}};
  HPD_TRY_ASSIGN(
      const std::unique_ptr<TraceDatabase> database,
      OpenOwnTrace(
          source, trace.path,
          [&options](const std::string& warning) { options.warnings.push_back(warning); },
          kProgram));
  return WriteReport(*database, options, page);
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
                   ReportOptions& options,
                   const FilePlace& page) {
  HPD_TRY_ASSIGN(const std::string bytes, MakeReport(database, options));
  HPD_TRY_ASSIGN(OutputFile file, OutputFile::Create(page));
  HPD_TRY(file.Write(bytes));
  return file.Finish();
}

FilePlace ReportBeside(const FilePlace& trace) {
  return trace.Beside(kUsualName);
}

void PrintReportPath(const std::string& path) {
  const std::string line =
      FileLine("report", path, "(open in a browser)", TerminalWidth(STDERR_FILENO));
  PrintLines(stderr, line);
}

void PrintNoReport(const std::string& cause,
                   bool has_whole_trace,
                   const std::string& trace_path) {
  Print(stderr,
        "heap_profile: cannot make the report: %s; %sheap_profile report %s makes it\n",
        cause.c_str(), has_whole_trace ? "the trace is complete, " : "",
        Printable(trace_path).c_str());
}

int MakeReportBeside(const FilePlace& trace, bool has_whole_trace, bool quiet) {
  struct stat status {};

  if (stat(trace.at.c_str(), &status) != 0 || status.st_size == 0)
    return kExitOk;  // what went wrong is said
  const FilePlace page = ReportBeside(trace);
  const SteeringSignals signals;
  const ScopedFd stop_requests = StopRequests();
  std::string cause = "it was interrupted";
  bool is_made = false;
  bool has_failed = false;
  RunInWorkers(
      1, [&](size_t) { return WritePageBeside(trace, page).message(); },
      [&](size_t, const Result<std::string>& answer) {
        cause = answer.ok() ? answer.value() : answer.status().message();
        is_made = cause.empty();
        has_failed = !is_made;
      },
      {.memory_bytes = MemoryForMore(),
       .divides_memory = false,
       .cpu_seconds = kReportSeconds,
       .wall_seconds = kReportSeconds,
       .cancel_fd = stop_requests.get()});
  if (is_made && !quiet)
    PrintReportPath(page.path);
  if (!is_made)
    PrintNoReport(cause, has_whole_trace, trace.path);
  return has_failed ? kExitFailure : kExitOk;
}

}  // namespace heapprofd
