// `heap_profile view FILE...`: the page of the report, served to this machine's browser,
// with what takes a program behind it.
#include <malloc.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "base/print.h"
#include "cli/command_table.h"
#include "cli/flag_values.h"
#include "cli/memory_budget.h"
#include "cli/open_traces.h"
#include "cli/results/report_warnings.h"
#include "cli/view/browser_start.h"
#include "cli/view/view_api.h"
#include "import/import_file.h"
#include "report/report_data.h"
#include "report/report_page.h"

namespace heapprofd {
namespace {

constexpr char kViewCommand[] = "heap_profile view";

struct ViewOptions {
  Words files;
  std::chrono::milliseconds idle = std::chrono::minutes(30);
  bool is_opened = true;
  uint64_t memory_budget = 0;  // bytes; 0: there is none
};

std::vector<Flag> ViewFlags(ViewOptions& options) {
  const std::string group = "options";
  return {
      {.name = "idle",
       .value_name = "DURATION",
       .help = "End after this time without a request: 90s, 30min, 2h. Default 30min.",
       .details = "0: never.",
       .group = group,
       .apply = DurationValue("--idle", &options.idle)},
      {.name = "no-open",
       .help = "Open no browser; without a display or a terminal none is.",
       .group = group,
       .apply = Switch(&options.is_opened, false)},
      MemoryBudgetFlag(group, &options.memory_budget)};
}

// With what was wrong with the files, which decoding shows.
Result<std::string> DataOf(const OpenedFile& file, const Words& paths) {
  HPD_TRY_ASSIGN(BegunOrder order, BeginOrder(*file.database));
  HPD_TRY(file.database->Decode());
  for (const std::string& warning : file.warnings)
    Print(stderr, "%s: %s\n", kViewCommand, warning.c_str());
  ReportOptions options = {.version = HPD_VERSION,
                           .files = paths,
                           .warnings = file.warnings,
                           .is_served = true};
  TellOfRecordings(file.trace(), &options);
  return EncodeReport(*file.database, options, std::move(order));
}

Result<int> RunView(const ViewOptions& options) {
  if (options.files.empty())
    return Invalid(
        "cannot view: no file is named; for example: heap_profile view raw-trace");
  HPD_TRY(UseMemoryBudget(options.memory_budget));
  HPD_TRY_ASSIGN(const std::unique_ptr<OpenedFile> file,
                 OpenFiles(options.files, kViewCommand));
  HPD_TRY_ASSIGN(std::string data, DataOf(*file, options.files));
  ViewApi api(*file);
  const WebSite site = {
      .token = RandomToken(),
      .page = ReportPage("", {.kind = PageKind::kServed,
                              .has_objects = !file->trace().heap_graph.graphs.empty()}),
      .data = std::move(data),
      .answer = [&api](const WebRequest& request) { return api.Answer(request); },
      .cancel = &file->database->cancel_flag()};
  std::optional<BrowserStart> browser;
  const auto announce = [&](const std::string& url) {
    PrintText(url + "\n");
    fflush(stdout);
    Print(stderr, "%s: Ctrl-C ends it\n", kViewCommand);
    // What was freed has served again until here, which is quicker than to return it.
    malloc_trim(0);
    ReturnFreedMemory();
    if (options.is_opened)
      browser.emplace(url);
  };
  HPD_TRY_ASSIGN(const WebEnd end, ServeWeb(site, {.idle = options.idle}, announce));
  if (end == WebEnd::kIdle)
    Print(stderr, "%s: ended: nobody has asked for anything; --idle sets for how long\n",
          kViewCommand);
  if (end != WebEnd::kStillBusy)
    return static_cast<int>(kExitOk);
  // A query that cannot be cancelled still reads what would be taken from it.
  browser.reset();
  fflush(nullptr);
  _exit(kExitOk);
}

}  // namespace

CommandLine ViewLine() {
  const auto options = std::make_shared<ViewOptions>();
  return {
      .text = {.name = kViewCommand,
               .summary = "Shows heap profiles in a browser, with SQL and source.",
               .usage = "heap_profile view [--idle DURATION] [--no-open] FILE...",
               .epilogue =
                   kReadableFiles +
                   std::string(
                       "It is the page of heap_profile report, served on 127.0.0.1, "
                       "that can be\nasked questions in SQL and shows lines of source "
                       "files. The address is printed;\nwho does not know it sees "
                       "nothing. docs/view.md has the rest.\n")},
      .flags = ViewFlags(*options),
      .take_word = TakeWords(&options->files),
      .run = [options] { return RunView(*options); }};
}

}  // namespace heapprofd
