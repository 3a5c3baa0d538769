#include "cli/inspect/show_command.h"

#include <unistd.h>

#include <cstdio>
#include <memory>

#include "base/print.h"
#include "base/text.h"
#include "cli/flag_values.h"
#include "cli/inspect/opened_file.h"
#include "cli/open_traces.h"
#include "cli/results/summary.h"
#include "cli/terminal_color.h"
#include "cli/text_layout.h"

namespace heapprofd {
namespace {

constexpr char kShowCommand[] = "heap_profile show";
constexpr size_t kLeastDumps = 3;  // that make a line of the heap

struct ShowOptions {
  Words files;
  uint32_t top = 10;
  uint32_t width = 0;  // 0: the terminal's
};

std::vector<Flag> ShowFlags(ShowOptions& options) {
  const std::string group = "options";
  return {{.name = "top",
           .value_name = "N",
           .help = "Rows of each table. Default 10.",
           .group = group,
           .apply = NumberValue("--top", &options.top, 1000, "a number from 0 to 1000")},
          {.name = "width",
           .value_name = "COLUMNS",
           .help = "As for a terminal of this width. Default: the terminal's.",
           .group = group,
           .apply = NumberValue("--width", &options.width, 10000,
                                "a number of columns from 0 to 10000")}};
}

// What was live at the dumps of the process's first heap.
std::vector<double> HistoryOf(const OpenedFile& file, const RestoredProfile& process) {
  const ImportedTrace& trace = file.trace();
  const std::vector<uint32_t> dumps =
      file.DumpsOf(process.upid(), process.profile().heaps[0].heap_name);
  if (dumps.size() < kLeastDumps)
    return {};
  std::vector<double> history;
  double live = 0;
  for (const uint32_t dump : dumps) {
    const ImportedDump& row = trace.dumps[dump];
    for (size_t i = 0; i < row.allocation_count; ++i)
      live += static_cast<double>(trace.allocations.size[row.first_allocation + i]);
    history.push_back(live);
  }
  return history;
}

std::vector<ProcessResult> ResultsOf(const OpenedFile& file) {
  std::vector<ProcessResult> results;
  for (const auto& process : file.processes) {
    ProcessResult result;
    result.profile = &process->profile();
    result.history = HistoryOf(file, *process);
    result.resident_kib = process->profile().memory.rss_kib;
    result.tells_end = file.tells_end();
    results.push_back(std::move(result));
  }
  return results;
}

// Whether there is something to show.
bool Show(const OpenedFile& file, const ShowOptions& options) {
  const std::string reason = file.ReasonForNothing();
  if (!reason.empty()) {
    Print(stderr, "%s: nothing to show of %s: %s\n", kShowCommand, file.path.c_str(),
          reason.c_str());
    return false;
  }
  const std::vector<ProcessResult> results = ResultsOf(file);
  const size_t width = options.width != 0 ? options.width : TerminalWidth(STDOUT_FILENO);
  const std::string text = FormatSummary(results, {.top = options.top,
                                                   .seconds = file.seconds(),
                                                   .width = width,
                                                   .use_unicode = TerminalShowsUnicode(),
                                                   .dump_at_max = !results[0].tells_end,
                                                   .warnings = file.warnings,
                                                   .lists_files = false});
  PrintText(ShowsColor(STDOUT_FILENO) ? WithColor(text) : text);
  return true;
}

Result<int> ShowFiles(const ShowOptions& options) {
  if (options.files.empty())
    return Invalid(
        "cannot show: no file is named; for example: heap_profile show raw-trace");
  int exit_code = kExitOk;
  for (const std::string& path : options.files) {
    HPD_TRY_ASSIGN(const std::unique_ptr<OpenedFile> file, OpenFile(path, kShowCommand));
    if (options.files.size() > 1)
      PrintText((&path == options.files.data() ? "" : "\n") + Printable(path) + "\n");
    if (!Show(*file, options))
      exit_code = kExitNothing;
  }
  return exit_code;
}

}  // namespace

CommandLine ShowLine() {
  const auto options = std::make_shared<ShowOptions>();
  return {.text = {.name = kShowCommand,
                   .summary = "Prints the summary of a recording again, or of any other "
                              "profile.",
                   .usage = "heap_profile show [OPTIONS] FILE...",
                   .epilogue =
                       kReadableFiles +
                       std::string(
                           "The summary is the one that ends a recording, without what "
                           "only the recorder\nknew: why names are missing, and which "
                           "programs could not be recorded. The exit\ncode is 4 when a "
                           "file has nothing to show. NO_COLOR turns colours off.\n")},
          .flags = ShowFlags(*options),
          .take_word = TakeWords(&options->files),
          .run = [options] { return ShowFiles(*options); }};
}

}  // namespace heapprofd
