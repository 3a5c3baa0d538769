// `heap_profile show FILE...`: what the end of a recording has said, from the file.
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "base/print.h"
#include "base/text.h"
#include "cli/command_table.h"
#include "cli/flag_values.h"
#include "cli/inspect/file_summary.h"
#include "cli/inspect/opened_file.h"
#include "cli/open_traces.h"
#include "cli/terminal_color.h"
#include "cli/text_layout.h"

namespace heapprofd {
namespace {

constexpr char kShowCommand[] = "heap_profile show";

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

// Whether there is something to show.
bool Show(const OpenedFile& file, const ShowOptions& options) {
  if (!file.TellsSomething(kShowCommand))
    return false;
  const std::string text = FormatFile(
      file, {.top = options.top,
             .width = options.width != 0 ? options.width : TerminalWidth(STDOUT_FILENO),
             .use_unicode = TerminalShowsUnicode()});
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
                           "The summary is the one that ends a recording. The exit "
                           "code is 4 when a file has\nnothing to show. NO_COLOR turns "
                           "colours off.\n")},
          .flags = ShowFlags(*options),
          .take_word = TakeWords(&options->files),
          .run = [options] { return ShowFiles(*options); }};
}

}  // namespace heapprofd
