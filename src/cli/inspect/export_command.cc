#include "cli/inspect/export_command.h"

#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "base/print.h"
#include "cli/flag_values.h"
#include "cli/inspect/comparison.h"
#include "cli/open_traces.h"
#include "cli/output_file.h"
#include "cli/results/process_name.h"
#include "export/folded.h"
#include "export/functions_csv.h"
#include "export/gzip.h"
#include "export/pprof.h"
#include "export/selection.h"
#include "export/speedscope.h"

namespace heapprofd {
namespace {

constexpr char kExportCommand[] = "heap_profile export";

struct ExportOptions {
  Words files;
  std::string format;
  std::string output = "-";
  std::string heap;
  View view = View::kSpace;
  std::optional<uint64_t> pid;
};

std::string ExportTitle(const ChosenHeap& heap) {
  return ProcessName(*heap.profile) + ", " + heap.heap->heap_name;
}

std::string Pprof(const ChosenHeap& chosen, View /*all of them are in it*/) {
  const OpenedFile& file = *chosen.file;
  PprofOptions options;
  for (const auto& process : file.processes) {
    if (&process->profile() != chosen.profile)
      continue;
    const PprofMessage::Header header = HeaderAt(
        file.trace(), static_cast<int64_t>(chosen.heap->end_ns), process->upid());
    options.time_unix_ns = header.time_unix_ns;
    options.comments = header.comments;
  }
  if (chosen.heap->sampling_interval > 1)
    options.comments.push_back("sampling interval: " +
                               std::to_string(chosen.heap->sampling_interval) + " bytes");
  return Gzip(EncodePprof(*chosen.profile, *chosen.heap, options));
}

std::string Folded(const ChosenHeap& heap, View view) {
  return EncodeFolded(*heap.profile, *heap.heap, view);
}

std::string Speedscope(const ChosenHeap& heap, View view) {
  return EncodeSpeedscope(*heap.profile, *heap.heap, view, ExportTitle(heap));
}

std::string Csv(const ChosenHeap& heap, View view) {
  return EncodeFunctionsCsv(*heap.profile, *heap.heap, view);
}

struct Format {
  const char* name;
  const char* help;
  std::string (*encode)(const ChosenHeap&, View);
};

constexpr Format kFormats[] = {
    {"pprof", "all four views, gzip: go tool pprof, speedscope.app", Pprof},
    {"folded", "a line per stack: flamegraph.pl, inferno", Folded},
    {"speedscope", "JSON: speedscope.app", Speedscope},
    {"csv", "a row per function: itself, total", Csv},
};

struct NamedView {
  const char* name;
  View view;
};

constexpr NamedView kViews[] = {
    {"space", View::kSpace},
    {"objects", View::kObjects},
    {"alloc_space", View::kAllocSpace},
    {"alloc_objects", View::kAllocObjects},
};

template <typename Rows>
Words NamesOf(const Rows& rows) {
  Words names;
  for (const auto& row : rows)
    names.emplace_back(row.name);
  return names;
}

const Format* FormatOf(const std::string& name) {
  for (const Format& format : kFormats) {
    if (format.name == name)
      return &format;
  }
  return nullptr;
}

Status SetView(ExportOptions& options, const std::string& name) {
  for (const NamedView& known : kViews) {
    if (known.name == name) {
      options.view = known.view;
      return {};
    }
  }
  return Invalid("cannot use --view " + name + ": there is no such view; " +
                 DidYouMean(name, NamesOf(kViews),
                            "use space, objects, alloc_space or alloc_objects"));
}

Status SetFormat(ExportOptions& options, const std::string& name) {
  options.format = name;
  if (FormatOf(name) != nullptr)
    return {};
  return Invalid(
      "cannot use --format " + name + ": there is no such format; " +
      DidYouMean(name, NamesOf(kFormats), "use pprof, folded, speedscope or csv"));
}

std::vector<Flag> ExportFlags(ExportOptions& options) {
  const std::string group = "options";
  return {
      {.letter = 'f',
       .name = "format",
       .value_name = "FORMAT",
       .help = "One of the formats above.",
       .group = group,
       .apply = [&options](const std::string& name) { return SetFormat(options, name); }},
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
       .apply = [&options](const std::string& name) { return SetView(options, name); }},
      {.letter = 'p',
       .name = "pid",
       .value_name = "PID",
       .help = "Of this process. Default: the largest heap's.",
       .group = group,
       .apply = NumberValue("--pid", &options.pid, INT32_MAX, "a process id")},
      {.name = "heap",
       .value_name = "NAME",
       .help = "This heap of it. Default: the largest one.",
       .group = group,
       .apply = TextValue("--heap", &options.heap)}};
}

// What the options leave of the file.
Result<ChosenHeap> ChooseHeap(OpenedFile& file, const ExportOptions& options) {
  if (options.pid)
    std::erase_if(file.processes, [&](const auto& process) {
      return static_cast<uint64_t>(process->profile().process.pid) != *options.pid;
    });
  const ChosenHeap heap = LargestHeap(file, options.heap);
  if (heap.heap == nullptr)
    return Status(StatusCode::kNotFound,
                  "cannot export " + file.path + ": it has no profile of process " +
                      std::to_string(options.pid.value_or(0)) +
                      "; heap_profile stats --json lists those it has");
  if (!options.heap.empty() && heap.heap->heap_name != options.heap)
    return Status(StatusCode::kNotFound,
                  "cannot export " + file.path + ": it has no heap named " +
                      options.heap + "; heap_profile stats --json lists those it has");
  return heap;
}

// Of a dump of the maximum what was live then, as it stands in the file.
HeapDump AtMaximum(HeapDump heap) {
  CallsiteRows<CallsiteTotals> callsites;
  for (const auto& [callsite, totals] : heap.callsites) {
    const auto peak = heap.peak.find(callsite);
    CallsiteTotals at_maximum = totals;
    at_maximum.freed = totals.allocated;
    if (peak != heap.peak.end())
      at_maximum.freed -= peak->second;
    callsites.emplace(callsite, at_maximum);
  }
  heap.callsites = std::move(callsites);
  return heap;
}

Result<int> RunExport(const ExportOptions& options) {
  if (options.files.size() != 1 || options.format.empty())
    return Invalid(
        "cannot export: a format and one file are needed; for example: heap_profile "
        "export --format folded raw-trace -o folded.txt");
  HPD_TRY_ASSIGN(const std::unique_ptr<OpenedFile> file,
                 OpenFile(options.files[0], kExportCommand));
  for (const std::string& warning : file->warnings)
    Print(stderr, "%s: %s\n", kExportCommand, warning.c_str());
  const std::string reason = file->ReasonForNothing();
  if (!reason.empty()) {
    Print(stderr, "%s: nothing to export of %s: %s\n", kExportCommand, file->path.c_str(),
          reason.c_str());
    return static_cast<int>(kExitNothing);
  }
  HPD_TRY_ASSIGN(ChosenHeap heap, ChooseHeap(*file, options));
  HeapDump at_maximum;
  if (!file->tells_end()) {
    at_maximum = AtMaximum(*heap.heap);
    heap.heap = &at_maximum;
  }
  const std::string text = FormatOf(options.format)->encode(heap, options.view);
  HPD_TRY_ASSIGN(OutputFile output, OutputFile::Create(options.output));
  HPD_TRY(output.Write(text));
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
  for (const Format& format : kFormats)
    text.words.push_back({format.name, format.help});
  return {.text = std::move(text),
          .flags = ExportFlags(*options),
          .take_word = TakeWords(&options->files),
          .run = [options] { return RunExport(*options); }};
}

}  // namespace heapprofd
