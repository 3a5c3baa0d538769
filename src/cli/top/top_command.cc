// `heap_profile top`: who holds memory while programs run.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

#include "cli/command_table.h"
#include "cli/flag_values.h"
#include "cli/record/options.h"
#include "cli/record/record_flags.h"
#include "cli/terminal_color.h"
#include "cli/text_layout.h"
#include "cli/top/top_run.h"

namespace heapprofd {
namespace {

constexpr char kTopCommand[] = "heap_profile top";

struct TopArguments {
  Options recording;
  uint32_t rows = 10;
  uint32_t count = 0;
};

// Those of a recording that mean something here, and our own.
std::vector<Flag> TopFlags(TopArguments& arguments) {
  constexpr std::array<std::string_view, 15> kOfRecording = {
      "name",         "pid",
      "no-running",   "no-startup",
      "no-children",  "heaps",
      "all-heaps",    "exclude-heaps",
      "interval",     "duration",
      "block-client", "no-block-client",
      "no-start",     "block-client-timeout",
      "shmem-size"};
  std::vector<Flag> flags;
  for (Flag& flag : RecordFlags(arguments.recording)) {
    if (std::find(kOfRecording.begin(), kOfRecording.end(), flag.name) !=
        kOfRecording.end())
      flags.push_back(std::move(flag));
  }
  const std::string group = "output";
  flags.push_back(
      {.name = "top",
       .value_name = "N",
       .help = "Rows of each table without a terminal. Default 10.",
       .group = group,
       .apply = NumberValue("--top", &arguments.rows, 1000, "a number from 0 to 1000")});
  flags.push_back({.name = "count",
                   .value_name = "N",
                   .help = "Without a terminal: end after this many tables.",
                   .group = group,
                   .apply = NumberValue("--count", &arguments.count, UINT32_MAX,
                                        "a number; 0 is until the end")});
  return flags;
}

Result<int> RunTop(TopArguments& arguments) {
  Options& options = arguments.recording;
  HPD_TRY(CheckOptions(options));
  HPD_TRY_ASSIGN(SymbolizeOptions symbols, SymbolizeOptions::FromEnvironment());
  const bool has_screen = Screen::IsPossible();
  HPD_TRY_ASSIGN(RecorderProcess recorder, RecorderProcess::Start(options, has_screen));
  return TopRun(&recorder, {.has_screen = has_screen,
                            .rows = arguments.rows,
                            .count = arguments.count,
                            .interval_bytes = options.session.interval_bytes,
                            .style = {.use_unicode = TerminalShowsUnicode(),
                                      .use_color = ShowsColor(STDOUT_FILENO)},
                            .symbols = std::move(symbols)})
      .Run();
}

}  // namespace

CommandLine TopLine() {
  const auto arguments = std::make_shared<TopArguments>();
  return {
      .text =
          {.name = kTopCommand,
           .summary = "Shows who holds memory while programs run.",
           .usage = "heap_profile top [OPTIONS] -p PIDS | -n NAMES\n"
                    "heap_profile top [OPTIONS] -- PROGRAM [ARGUMENTS]",
           .epilogue =
               "keys: t live bytes, d change of the last second, a allocated per\n"
               "second, o live objects: by what rows are in order; h threads, or\n"
               "functions again; f filter by name, Enter stack of the row, space pause,\n"
               "s snapshot, q quit.\n"
               "\n"
               "It is an ordinary recording that is written nowhere; a snapshot is a\n"
               "trace in the working directory, for all other commands. Where standard\n"
               "input and output are no terminal, a table is printed each second. On a\n"
               "terminal PROGRAM reads nothing, and what it prints there is not shown.\n"
               "The exit code is PROGRAM's, or 4 when nothing was recorded.\n"},
      .flags = TopFlags(*arguments),
      .take_rest =
          [arguments](const Words& rest) {
            arguments->recording.given.separator = true;
            arguments->recording.command = rest;
            return Status();
          },
      .run = [arguments] { return RunTop(*arguments); }};
}

}  // namespace heapprofd
