// `heap_profile stats FILE`: the figures of a recording, for people, programs and gates.
#include <cstdio>
#include <memory>

#include "base/format.h"
#include "base/print.h"
#include "base/text.h"
#include "cli/command_table.h"
#include "cli/flag_values.h"
#include "cli/inspect/figures.h"
#include "cli/inspect/missing_records.h"
#include "cli/inspect/opened_file.h"
#include "cli/open_traces.h"
#include "cli/results/process_name.h"
#include "cli/text_layout.h"
#include "profile/figures.h"

namespace heapprofd {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kStatsCommand[] = "heap_profile stats";
constexpr int kStatsJsonVersion = 1;  // of the JSON

struct StatsOptions {
  Words files;
  bool json = false;
  std::vector<Threshold> thresholds;
};

std::vector<Flag> StatsFlags(StatsOptions& options) {
  const std::string group = "options";
  return {{.name = "json",
           .help = "For programs; docs/terminal.md has the keys.",
           .group = group,
           .apply = Switch(&options.json)},
          {.name = "fail-if",
           .value_name = "CONDITION",
           .help = "Exit with 5 when it is true: 'peak>300MiB'.",
           .details = "The figures are live, peak, allocated and calls, of all processes "
                      "and heaps together; > and < compare. Where the 95 % interval of "
                      "the figure reaches over the limit it is said and does not fail. "
                      "May be repeated.",
           .group = group,
           .apply = ThresholdValue(&options.thresholds, FigureNames(),
                                   /*of_change=*/false)}};
}

// null: 0 stands for what the file does not tell.
Json Known(uint64_t figure) {
  return figure == 0 ? Json() : Json(figure);
}

Json HeapJson(const ChosenHeap& chosen) {
  const HeapDump& heap = *chosen.heap;
  Json json = {{"heap", heap.heap_name},
               {"sampling_interval", Known(heap.sampling_interval)},
               {"callsites", heap.callsites.size()}};
  for (const HeapFigure& figure : FiguresOf({&chosen, 1}))
    AddFigure(figure, &json);
  return json;
}

Json ProcessJson(const OpenedFile& file, const RestoredProfile& process) {
  const TargetProfile& profile = process.profile();
  Json heaps = Json::array();
  for (const HeapDump& heap : profile.heaps)
    heaps.push_back(HeapJson({&file, &profile, &heap}));
  Json quality = Json::object();
  for (const Figure& figure : kFigures)
    quality[figure.name] =
        process.tells_quality() ? Json(profile.quality.*figure.value) : Json();
  Json json = {
      {"name", ProgramName(profile)},
      {"from_startup", profile.process.pid != 0 ? Json(profile.from_startup) : Json()},
      {"rss_kb", Known(profile.memory.rss_kib)},
      {"heaps", std::move(heaps)},
      {"quality", std::move(quality)}};
  AddPid(profile, &json);
  return json;
}

void PrintJson(const OpenedFile& file,
               const std::vector<HeapFigure>& figures,
               const std::vector<Judgement>& judgements) {
  Json json = {
      {"version", kStatsJsonVersion}, {"file", file.path}, {"seconds", file.seconds()}};
  for (const HeapFigure& figure : figures)
    AddFigure(figure, &json);
  json["processes"] = Json::array();
  for (const auto& process : file.processes)
    json["processes"].push_back(ProcessJson(file, *process));
  json["thresholds"] = JudgementsJson(judgements);
  json["warnings"] = WarningsOf(file);
  PrintData(JsonText(json));
}

// What is behind the figure; "": it is exact.
std::string LimitsText(const HeapFigure& figure) {
  if (!figure.has_limits)
    return "the file does not tell its sampling error";
  std::string lack = figure.is_incomplete ? "(incomplete)" : "";
  if (figure.value.high <= figure.value.low)
    return lack;
  return "95 % between " + FormatFigure(figure.value.low, figure.unit) + " and " +
         FormatFigure(figure.value.high, figure.unit) + (lack.empty() ? "" : " ") + lack;
}

std::string Row(const HeapFigure& figure) {
  if (!figure.is_known)
    return "  " + Pad(figure.title, 13) + "unknown\n";
  const std::string value = FormatFigure(figure.value.bytes, figure.unit);
  const std::string limits = LimitsText(figure);
  return "  " + Pad(figure.title, 13) +
         (limits.empty() ? value : Pad(value, 12) + limits) + "\n";
}

void PrintTable(const OpenedFile& file, const std::vector<HeapFigure>& figures) {
  std::string text = Printable(file.path) + ": " + std::to_string(file.processes.size()) +
                     (file.processes.size() == 1 ? " process" : " processes") +
                     (file.seconds() > 0 ? ", " + FormatDuration(file.seconds()) : "") +
                     "\n\n";
  for (const HeapFigure& figure : figures)
    text += Row(figure);
  Quality quality;
  for (const auto& process : file.processes)
    quality += process->profile().quality;
  for (const Figure& figure : kFigures) {
    if (const uint64_t value = quality.*figure.value; value != 0)
      text += "  " + Pad(figure.name, 24) + std::to_string(value) + "\n";
  }
  for (const std::string& warning : WarningsOf(file))
    text += "  ! " + warning + "\n";
  PrintLines(stdout, text);
}

Result<int> RunStats(const StatsOptions& options) {
  if (options.files.size() != 1)
    return Invalid(
        "cannot tell figures: one file is needed; for example: heap_profile stats "
        "raw-trace");
  HPD_TRY_ASSIGN(const std::unique_ptr<OpenedFile> file,
                 OpenFile(options.files[0], kStatsCommand));
  if (!file->TellsSomething(kStatsCommand))
    return static_cast<int>(kExitNothing);
  const std::vector<HeapFigure> figures = FiguresOf(*file);
  HPD_TRY(CheckKnown(options.thresholds, figures, file->path));
  std::vector<Judgement> judgements;
  for (const Threshold& threshold : options.thresholds) {
    for (const HeapFigure& figure : figures) {
      if (figure.name == threshold.figure)
        judgements.push_back({.text = threshold.text,
                              .verdict = Judge(threshold, figure.value),
                              .knows_error = figure.has_limits,
                              .is_incomplete = figure.is_incomplete});
    }
  }
  if (options.json)
    PrintJson(*file, figures, judgements);
  else
    PrintTable(*file, figures);
  return SayJudgements(kStatsCommand, judgements);
}

}  // namespace

CommandLine StatsLine() {
  const auto options = std::make_shared<StatsOptions>();
  return {.text = {.name = kStatsCommand,
                   .summary = "Tells the figures of a recording, with their 95 % limits, "
                              "and fails when they are too high.",
                   .usage = "heap_profile stats [--json] [--fail-if CONDITION]... FILE",
                   .epilogue =
                       kReadableFiles +
                       std::string("The peak is the sum of all heaps' peaks. The exit "
                                   "code is 4 when the file has\nnothing to tell, 5 when "
                                   "a condition of --fail-if is true.\n")},
          .flags = StatsFlags(*options),
          .take_word = TakeWords(&options->files),
          .run = [options] { return RunStats(*options); }};
}

}  // namespace heapprofd
