// `heap_profile diff A B`: what changed from one recording to another.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

#include "base/format.h"
#include "base/print.h"
#include "base/text.h"
#include "cli/command_table.h"
#include "cli/flag_values.h"
#include "cli/inspect/comparison.h"
#include "cli/inspect/missing_records.h"
#include "cli/open_traces.h"
#include "cli/results/process_name.h"
#include "cli/text_layout.h"
#include "profile/estimate.h"

namespace heapprofd {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kDiffCommand[] = "heap_profile diff";
constexpr int kDiffJsonVersion = 1;  // of the JSON
constexpr size_t kMinNameWidth = 24;
constexpr size_t kDiffFigureWidth = 10;
constexpr size_t kLeastWidth = 80;

struct DiffOptions {
  Words files;
  uint32_t top = 10;
  bool json = false;
  std::vector<Threshold> thresholds;
};

std::vector<Flag> DiffFlags(DiffOptions& options) {
  const std::string group = "options";
  return {
      {.name = "top",
       .value_name = "N",
       .help = "Rows of the table. Default 10.",
       .group = group,
       .apply = NumberValue("--top", &options.top, 100000, "a number from 0 to 100000")},
      {.name = "json",
       .help = "For programs, all functions; docs/terminal.md has the keys.",
       .group = group,
       .apply = Switch(&options.json)},
      {.name = "fail-if",
       .value_name = "CONDITION",
       .help = "Exit with 5 when it is true: 'live>+5%', 'peak>+1MiB'.",
       .details = "The figures are live, peak, allocated and calls; > and < compare "
                  "the change from A to B. Where the 95 % interval of the change "
                  "reaches over the limit it is said and does not fail. May be "
                  "repeated.",
       .group = group,
       .apply = ThresholdValue(&options.thresholds, FigureNames(),
                               /*of_change=*/true)}};
}

// "▲ +1.20 MiB", "▼ -1.20 MiB": as the report has it, with the minus of all other lines.
std::string FormatChange(double change, FigureUnit unit) {
  const bool has_arrows = TerminalShowsUnicode();
  if (change == 0)
    return "= " + FormatFigure(0, unit);
  const std::string sign =
      change > 0 ? (has_arrows ? "▲ +" : "+") : (has_arrows ? "▼ -" : "-");
  return sign + FormatFigure(std::abs(change), unit);
}

std::string DiffTitle(const ChosenHeap& heap) {
  return Printable(heap.file->path) + ": " + ProcessName(*heap.profile) + ", " +
         Printable(heap.heap->heap_name);
}

std::string FigureRow(const FigureChange& figure) {
  const FigureUnit unit = figure.a.unit;
  const double a = figure.a.value.bytes;
  const double b = figure.b.value.bytes;
  const double change = figure.change.bytes;
  if (!figure.IsKnown())
    return "  " + Pad(figure.a.title, 13) + "not known of both\n";
  const std::string lack = figure.IsIncomplete() ? " (incomplete)" : "";
  if (change == 0)
    return "  " + Pad(figure.a.title, 13) + "the same: " + FormatFigure(a, unit) + lack +
           "\n";
  const double error = std::max(figure.change.high - change, change - figure.change.low);
  std::string text = "  " + Pad(figure.a.title, 13) +
                     "B - A = " + FormatChange(change, unit) +
                     (a > 0 ? " (" + FormatShare(change, a) + " of A)" : "") + ": from " +
                     FormatFigure(a, unit) + " to " + FormatFigure(b, unit);
  if (figure.IsNoise())
    text += ", within the sampling error";
  else if (error >= 0.5)
    text += std::string(", ") + (TerminalShowsUnicode() ? "±" : "+-") +
            FormatFigure(error, unit);
  return text + lack + "\n";
}

std::string FunctionRows(const Comparison& comparison, size_t top) {
  if (!comparison.tells_functions)
    return "\n  What functions hold is not known of both.\n";
  if (comparison.functions.empty())
    return "\n  Every function holds as much in B as in A.\n";
  const size_t width = std::max<size_t>(kLeastWidth, TerminalWidth(STDOUT_FILENO));
  const size_t name_width = std::max(kMinNameWidth, width - 4 * kDiffFigureWidth - 10);
  std::string text = "\n  " + Pad("Live memory by function", name_width + 6) +
                     Pad("B - A", kDiffFigureWidth + 3) +
                     Pad(TerminalShowsUnicode() ? "±" : "+-", kDiffFigureWidth) +
                     Pad("A", kDiffFigureWidth) + "B\n";
  size_t rank = 0;
  for (const FunctionChange& row : comparison.functions) {
    if (rank == top)
      break;
    char number[32];
    snprintf(number, sizeof(number), "  %2zu  ", ++rank);
    text += number + Pad(Cut(Printable(row.function.label), name_width), name_width + 2) +
            Pad(FormatChange(row.b - row.a, FigureUnit::kBytes), kDiffFigureWidth + 3) +
            Pad(!comparison.error_is_known ? "?"
                : row.IsNoise()            ? "noise"
                                           : FormatBytes(row.error),
                kDiffFigureWidth) +
            Pad(FormatBytes(row.a), kDiffFigureWidth) + FormatBytes(row.b) + "\n";
  }
  if (comparison.functions.size() > rank)
    text += "      and " + std::to_string(comparison.functions.size() - rank) +
            " more functions\n";
  return text;
}

bool ShowsNoise(const Comparison& comparison, size_t top) {
  const size_t shown = std::min(top, comparison.functions.size());
  return std::any_of(comparison.functions.begin(),
                     comparison.functions.begin() + static_cast<ptrdiff_t>(shown),
                     [](const auto& row) { return row.IsNoise(); });
}

std::vector<std::string> WarningsOfBoth(const ChosenHeap& a, const ChosenHeap& b) {
  std::vector<std::string> warnings;
  for (const OpenedFile* file : {a.file, b.file}) {
    const std::string path = Printable(file->path);
    for (std::string& warning : WarningsOf(*file)) {
      if (!warning.starts_with(path))
        warning.insert(0, path + ": ");
      warnings.push_back(std::move(warning));
    }
  }
  return warnings;
}

void PrintTable(const ChosenHeap& a,
                const ChosenHeap& b,
                const Comparison& comparison,
                const DiffOptions& options) {
  std::string text = "A  " + DiffTitle(a) + "\nB  " + DiffTitle(b) + "\n\n";
  for (const FigureChange& figure : comparison.figures)
    text += FigureRow(figure);
  text += FunctionRows(comparison, options.top);
  if (!comparison.error_is_known)
    text += "\n  the sampling error of these figures is not known\n";
  else if (ShowsNoise(comparison, options.top))
    text += "\n  noise: the change is within the sampling error (95 %)\n";
  for (const std::string& warning : WarningsOfBoth(a, b))
    text += "  ! " + warning + "\n";
  PrintLines(stdout, text);
}

// null: the files do not tell.
Json Known(bool is_known, Json value) {
  return is_known ? std::move(value) : Json();
}

Json HeapJson(const ChosenHeap& heap) {
  Json object = {{"file", heap.file->path},
                 {"name", ProgramName(*heap.profile)},
                 {"heap", heap.heap->heap_name}};
  AddPid(*heap.profile, &object);
  return object;
}

void PrintJson(const ChosenHeap& a,
               const ChosenHeap& b,
               const Comparison& comparison,
               const std::vector<Judgement>& judgements) {
  Json object = {{"version", kDiffJsonVersion}, {"a", HeapJson(a)}, {"b", HeapJson(b)}};
  object["error_is_known"] = comparison.error_is_known;
  for (const FigureChange& figure : comparison.figures) {
    if (!figure.IsKnown())
      continue;
    const bool is_known = figure.HasLimits();
    object[figure.a.json_name] = {
        {"a", RoundedFigure(figure.a.value.bytes)},
        {"b", RoundedFigure(figure.b.value.bytes)},
        {"change", std::llround(figure.change.bytes)},
        {"change_low", Known(is_known, std::llround(figure.change.low))},
        {"change_high", Known(is_known, std::llround(figure.change.high))},
        {"is_noise", Known(is_known, figure.IsNoise())}};
  }
  object["functions"] = Known(comparison.tells_functions, Json::array());
  const bool is_known = comparison.error_is_known;
  for (const FunctionChange& row : comparison.functions)
    object["functions"].push_back({{"name", row.function.name},
                                   {"module", row.function.module},
                                   {"a", RoundedFigure(row.a)},
                                   {"b", RoundedFigure(row.b)},
                                   {"change", std::llround(row.b - row.a)},
                                   {"error", Known(is_known, std::llround(row.error))},
                                   {"is_noise", Known(is_known, row.IsNoise())}});
  object["thresholds"] = JudgementsJson(judgements);
  object["warnings"] = WarningsOfBoth(a, b);
  PrintData(JsonText(object));
}

// kInvalidArgument when a file does not tell what a gate asks for.
Result<std::vector<Judgement>> JudgeAll(const std::vector<Threshold>& thresholds,
                                        const ChosenHeap& a,
                                        const ChosenHeap& b,
                                        const Comparison& comparison) {
  for (const auto& [side, path] : {std::pair(&FigureChange::a, a.file->path),
                                   std::pair(&FigureChange::b, b.file->path)}) {
    std::vector<HeapFigure> figures;
    for (const FigureChange& figure : comparison.figures)
      figures.push_back(figure.*side);
    HPD_TRY(CheckKnown(thresholds, figures, path));
  }
  std::vector<Judgement> judgements;
  for (const Threshold& threshold : thresholds) {
    for (const FigureChange& figure : comparison.figures) {
      if (figure.a.name == threshold.figure)
        judgements.push_back(
            {.text = threshold.text,
             .verdict = JudgeChange(threshold, figure.a.value, figure.b.value),
             .knows_error = figure.HasLimits(),
             .is_incomplete = figure.IsIncomplete()});
    }
  }
  return judgements;
}

void SayNothingInCommon(const OpenedFile& a, const OpenedFile& b) {
  Print(stderr,
        "%s: nothing to compare in %s and %s: no heap of A (%s) has the name of one of B "
        "(%s); record both with --all-heaps, or name the same ones in --heaps\n",
        kDiffCommand, a.path.c_str(), b.path.c_str(), HeapNamesOf(a).c_str(),
        HeapNamesOf(b).c_str());
}

Result<int> RunDiff(const DiffOptions& options) {
  if (options.files.size() != 2)
    return Invalid(
        "cannot compare: two files are needed; for example: heap_profile diff "
        "before.trace after.trace");
  std::vector<std::unique_ptr<OpenedFile>> files;
  for (const std::string& path : options.files) {
    HPD_TRY_ASSIGN(std::unique_ptr<OpenedFile> file, OpenFile(path, kDiffCommand));
    if (!file->TellsSomething(kDiffCommand))
      return static_cast<int>(kExitNothing);
    files.push_back(std::move(file));
  }
  const std::optional<HeapPair> heaps = ComparableHeaps(*files[0], *files[1]);
  if (!heaps) {
    SayNothingInCommon(*files[0], *files[1]);
    return static_cast<int>(kExitNothing);
  }
  const auto& [a, b] = *heaps;
  const Comparison comparison = Compare(a, b);
  HPD_TRY_ASSIGN(const std::vector<Judgement> judgements,
                 JudgeAll(options.thresholds, a, b, comparison));
  if (options.json)
    PrintJson(a, b, comparison, judgements);
  else
    PrintTable(a, b, comparison, options);
  return SayJudgements(kDiffCommand, judgements);
}

}  // namespace

CommandLine DiffLine() {
  const auto options = std::make_shared<DiffOptions>();
  return {.text = {.name = kDiffCommand,
                   .summary = "Tells what changed from one recording to another, and "
                              "fails when it is too much.",
                   .usage = "heap_profile diff [--json] [--fail-if CONDITION]... A B",
                   .epilogue =
                       kReadableFiles +
                       std::string(
                           "The largest heap of A that B has, too, is compared with the "
                           "largest one of B of that\nname, at their ends, as the page "
                           "Compare of heap_profile report A B does. The exit\ncode is 4 "
                           "when there is nothing to compare, 5 when a condition is "
                           "true.\n")},
          .flags = DiffFlags(*options),
          .take_word = TakeWords(&options->files),
          .run = [options] { return RunDiff(*options); }};
}

}  // namespace heapprofd
