// `heap_profile export --format FORMAT FILE`: a heap of a file for other programs.
#include <cstdio>
#include <memory>
#include <utility>

#include "base/print.h"
#include "cli/command_table.h"
#include "cli/flag_values.h"
#include "cli/inspect/export_choice.h"
#include "cli/open_traces.h"
#include "cli/output_file.h"

namespace heapprofd {
namespace {

constexpr char kExportCommand[] = "heap_profile export";

struct ExportOptions {
  Words files;
  ExportChoice choice;
  std::string output = "-";
};

std::vector<Flag> ExportFlags(ExportOptions& options) {
  const std::string group = "options";
  return {
      {.letter = 'f',
       .name = "format",
       .value_name = "FORMAT",
       .help = "One of the formats above.",
       .group = group,
       .apply =
           [&options](const std::string& name) {
             return options.choice.SetFormat("--format ", name);
           }},
      {.letter = 'o',
       .name = "output",
       .value_name = "FILE",
       .help = "Write here. Default: -, standard output.",
       .group = group,
       .apply = TextValue("--output", &options.output)},
      {.name = "view",
       .value_name = "VIEW",
       .help = "space, objects, alloc_space or alloc_objects.",
       .details = "Live bytes, live objects, or all that were ever allocated. Default "
                  "space; pprof has all of them.",
       .group = group,
       .apply =
           [&options](const std::string& name) {
             return options.choice.SetView("--view ", name);
           }},
      {.letter = 'p',
       .name = "pid",
       .value_name = "PID",
       .help = "Of this process. Default: the largest heap's.",
       .group = group,
       .apply =
           [&options](const std::string& text) {
             return options.choice.SetPid("--pid ", text);
           }},
      {.name = "heap",
       .value_name = "NAME",
       .help = "This heap of it. Default: the largest one.",
       .group = group,
       .apply = TextValue("--heap", &options.choice.heap)}};
}

// Rows of CSV for a terminal: a name with line ends, quoted, begins no line of its own.
std::string OneLineEach(std::string text) {
  bool is_quoted = false;
  for (char& c : text) {
    is_quoted ^= c == '"';
    if (is_quoted && c == '\n')
      c = '?';
  }
  return text;
}

Result<int> RunExport(const ExportOptions& options) {
  if (options.files.size() != 1 || options.choice.format == nullptr)
    return Invalid(
        "cannot export: a format and one file are needed; for example: heap_profile "
        "export --format folded raw-trace -o folded.txt");
  HPD_TRY_ASSIGN(const std::unique_ptr<OpenedFile> file,
                 OpenFile(options.files[0], kExportCommand));
  for (const std::string& warning : file->warnings)
    Print(stderr, "%s: %s\n", kExportCommand, warning.c_str());
  if (!file->TellsSomething(kExportCommand))
    return static_cast<int>(kExitNothing);
  HPD_TRY_ASSIGN(const std::string text, Export(*file, options.choice));
  HPD_TRY_ASSIGN(OutputFile output, OutputFile::CreateNamed(options.output));
  const bool is_table = options.choice.format->name == std::string_view("csv");
  HPD_TRY(output.Write(output.is_terminal() && is_table ? OneLineEach(text) : text));
  HPD_TRY(output.Finish());
  return static_cast<int>(kExitOk);
}

}  // namespace

CommandLine ExportLine() {
  const auto options = std::make_shared<ExportOptions>();
  CommandText text = {
      .name = kExportCommand,
      .summary = "Writes a heap of a profile for other programs.",
      .usage = "heap_profile export --format FORMAT [OPTIONS] FILE [-o FILE]",
      .words_title = "formats",
      .epilogue =
          kReadableFiles +
          std::string("The state is that of the heap's last dump. heap_profile traceconv "
                      "profile makes\npprof files of all dumps and processes. The exit "
                      "code is 4 when the file has\nnothing to export.\n")};
  for (const ExportFormat& format : kExportFormats)
    text.words.push_back({format.name, format.help});
  return {.text = std::move(text),
          .flags = ExportFlags(*options),
          .take_word = TakeWords(&options->files),
          .run = [options] { return RunExport(*options); }};
}

}  // namespace heapprofd
