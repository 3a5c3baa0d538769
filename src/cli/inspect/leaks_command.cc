// `heap_profile leaks FILE`: stacks that grow or keep what they allocate.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <memory>

#include "base/format.h"
#include "base/print.h"
#include "base/text.h"
#include "cli/command_table.h"
#include "cli/flag_values.h"
#include "cli/inspect/leak_evidence.h"
#include "cli/inspect/missing_records.h"
#include "cli/open_traces.h"
#include "cli/results/process_name.h"
#include "cli/text_layout.h"
#include "profile/estimate.h"

namespace heapprofd {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kLeaksCommand[] = "heap_profile leaks";
constexpr int kLeaksJsonVersion = 1;  // of the JSON
constexpr size_t kCallers = 3;
constexpr size_t kCallerWidth = 40;
constexpr size_t kLeakFigureWidth = 12;

struct LeaksOptions {
  Words files;
  uint32_t top = 10;
  bool json = false;
  uint32_t newest_percent = 0;
  Words suppressions;  // paths of files
};

std::vector<Flag> LeaksFlags(LeaksOptions& options) {
  const std::string group = "options";
  return {
      {.name = "top",
       .value_name = "N",
       .help = "Stacks that are shown. Default 10.",
       .group = group,
       .apply = NumberValue("--top", &options.top, 100000, "a number from 0 to 100000")},
      {.name = "leave-out-newest",
       .value_name = "PERCENT",
       .help = "Without what was allocated in the last PERCENT of the recording's time, "
               "which may just not have been freed yet; 10 is a good value.",
       .group = group,
       .apply = NumberValue("--leave-out-newest", &options.newest_percent, 99,
                            "a number from 0 to 99")},
      {.name = "suppressions",
       .value_name = "FILE",
       .help = "Without stacks that a line leak:PATTERN of the file describes, as "
               "LeakSanitizer's suppressions; may be repeated.",
       .details =
           "PATTERN is a part of a function's name or of the path of a module or of "
           "a source file; * is any text, ^ and $ the begin and the end.",
       .group = group,
       .apply = TakeWords(&options.suppressions)},
      {.name = "json",
       .help = "For programs, all stacks; docs/terminal.md has the keys.",
       .group = group,
       .apply = Switch(&options.json)}};
}

std::string Callers(const std::vector<uint32_t>& stack, const Leaks& leaks) {
  const std::string arrow = TerminalShowsUnicode() ? "← " : "<- ";
  std::string text;
  for (size_t i = 1; i < stack.size() && i <= kCallers; ++i)
    text += (i == 1 ? "" : " ") + arrow +
            Cut(Printable(leaks.functions[stack[i]].label), kCallerWidth);
  return text;
}

// Half of what is live is older.
std::string AgeText(const SuspectStack& suspect) {
  return suspect.median_age_ns ? FormatDuration(*suspect.median_age_ns / 1e9) : "?";
}

std::string RowOf(size_t rank, const SuspectStack& suspect, const Leaks& leaks) {
  char number[32];
  snprintf(number, sizeof(number), "  %2zu  ", rank);
  const std::string freed =
      leaks.tells_frees ? FormatBytes(std::max(0.0, suspect.allocated - suspect.live))
                        : "?";
  const std::string growth = leaks.dumps > 1 ? (suspect.growth() < 0 ? "-" : "+") +
                                                   FormatBytes(std::abs(suspect.growth()))
                                             : "?";
  std::string text = number + Pad(EvidenceName(suspect.evidence), 22) +
                     Pad(FormatBytes(suspect.settled()), kLeakFigureWidth) +
                     Pad(growth, kLeakFigureWidth) + Pad(freed, kLeakFigureWidth) +
                     Pad(AgeText(suspect), kLeakFigureWidth) +
                     Printable(leaks.functions[suspect.stack[0]].label) +
                     (suspect.place.empty() ? "" : "  " + Printable(suspect.place)) +
                     "\n";
  const std::string callers = Callers(suspect.stack, leaks);
  return callers.empty() ? text : text + "      " + callers + "\n";
}

// What is not in the table.
std::string LeftOutText(const Leaks& leaks, const LeakFilter& filter) {
  std::string text;
  if (filter.newest_percent > 0)
    text += "  Left out: " + FormatBytes(leaks.left_out) + " of the last " +
            std::to_string(filter.newest_percent) + " % of the time.\n";
  for (const Suppression& suppression : filter.suppressions) {
    if (suppression.stacks > 0)
      text += "  Suppressed by leak:" + Printable(suppression.pattern) + ": " +
              FormatCounted(static_cast<double>(suppression.stacks), "stack", "stacks") +
              " with " + FormatBytes(suppression.bytes) + ".\n";
  }
  return text;
}

std::string Notes(const Leaks& leaks) {
  std::string text;
  if (leaks.dumps < kLeastDumps)
    text += "  Growth is seen in 3 dumps or more, and the file has " +
            std::to_string(leaks.dumps) +
            " of this heap.\n  Record with heap_profile -c 1000 for a dump every "
            "second.\n";
  if (!leaks.tells_frees)
    text +=
        "  Nothing was freed at all, or the file does not tell: never to be freed is no\n"
        "  evidence here.\n";
  return text;
}

void PrintTable(const ChosenHeap& heap,
                const Leaks& leaks,
                const LeakFilter& filter,
                size_t top) {
  std::string text =
      "Stacks that grow or keep what they allocate: " + ProcessName(*heap.profile) +
      ", heap " + Printable(heap.heap->heap_name) + ", " + std::to_string(leaks.dumps) +
      (leaks.dumps == 1 ? " dump" : " dumps") + "\n\n";
  if (leaks.stacks.empty())
    text += "  There is none.\n";
  else
    text += "  " +
            FormatCounted(static_cast<double>(leaks.stacks.size()), "stack holds",
                          "stacks hold") +
            " " + FormatBytes(leaks.held()) + " at the end, " +
            FormatShare(leaks.held(), leaks.live) +
            " of what is live then.\n  This is evidence, not proof: the program may "
            "still need it.\n";
  text += LeftOutText(leaks, filter) + Notes(leaks);
  if (!leaks.stacks.empty() && top > 0)
    text += "\n      " + Pad("evidence", 22) + Pad("live", kLeakFigureWidth) +
            Pad("growth", kLeakFigureWidth) + Pad("freed", kLeakFigureWidth) +
            Pad("age", kLeakFigureWidth) + "allocated by\n";
  for (size_t i = 0; i < std::min(top, leaks.stacks.size()); ++i)
    text += RowOf(i + 1, leaks.stacks[i], leaks);
  if (leaks.stacks.size() > top)
    text += "      and " + std::to_string(leaks.stacks.size() - top) + " more\n";
  for (const std::string& warning : WarningsOf(*heap.file))
    text += "  ! " + warning + "\n";
  PrintLines(stdout, text);
}

Json StackJson(const SuspectStack& suspect, const Leaks& leaks) {
  Json functions = Json::array();
  for (const uint32_t row : suspect.stack) {
    const StackFunction& function = leaks.functions[row];
    functions.push_back({{"name", function.name}, {"module", function.module}});
  }
  Json series = Json::array();
  for (const double live : suspect.series)
    series.push_back(RoundedFigure(live));
  Json json = {
      {"evidence", EvidenceName(suspect.evidence)},
      {"live_bytes", RoundedFigure(suspect.live)},
      {"live_bytes_error", RoundedFigure(suspect.error)},
      {"growth_bytes", leaks.dumps > 1 ? Json(std::llround(suspect.growth())) : Json()},
      {"live_bytes_by_dump", std::move(series)}};
  if (leaks.tells_frees)
    json["freed_bytes"] = RoundedFigure(std::max(0.0, suspect.allocated - suspect.live));
  else
    json["freed_bytes"] = nullptr;
  json["left_out_bytes"] = RoundedFigure(suspect.too_new);
  if (suspect.median_age_ns)
    json["median_age_ms"] = RoundedFigure(*suspect.median_age_ns / 1e6);
  else
    json["median_age_ms"] = nullptr;
  json["place"] = suspect.place.empty() ? Json() : Json(suspect.place);
  json["stack"] = std::move(functions);
  return json;
}

Json SuppressionsJson(const LeakFilter& filter) {
  Json list = Json::array();
  for (const Suppression& suppression : filter.suppressions)
    list.push_back({{"pattern", suppression.pattern},
                    {"stacks", suppression.stacks},
                    {"live_bytes", RoundedFigure(suppression.bytes)}});
  return list;
}

void PrintJson(const ChosenHeap& heap, const Leaks& leaks, const LeakFilter& filter) {
  Json json = {{"version", kLeaksJsonVersion},
               {"file", heap.file->path},
               {"name", ProgramName(*heap.profile)},
               {"heap", heap.heap->heap_name},
               {"dumps", leaks.dumps},
               {"tells_frees", leaks.tells_frees},
               {"live_bytes", RoundedFigure(leaks.live)},
               {"held_bytes", RoundedFigure(leaks.held())},
               {"left_out_bytes", RoundedFigure(leaks.left_out)},
               {"suppressions", SuppressionsJson(filter)},
               {"stacks", Json::array()},
               {"warnings", WarningsOf(*heap.file)}};
  AddPid(*heap.profile, &json);
  for (const SuspectStack& suspect : leaks.stacks)
    json["stacks"].push_back(StackJson(suspect, leaks));
  PrintData(JsonText(json));
}

Result<int> RunLeaks(const LeaksOptions& options) {
  if (options.files.size() != 1)
    return Invalid(
        "cannot look for leaks: one file is needed; for example: heap_profile leaks "
        "raw-trace");
  LeakFilter filter{.newest_percent = options.newest_percent};
  for (const std::string& path : options.suppressions) {
    HPD_TRY_ASSIGN(std::vector<Suppression> more, ReadSuppressions(path));
    std::ranges::move(more, std::back_inserter(filter.suppressions));
  }
  HPD_TRY_ASSIGN(const std::unique_ptr<OpenedFile> file,
                 OpenFile(options.files[0], kLeaksCommand));
  if (!file->TellsSomething(kLeaksCommand))
    return static_cast<int>(kExitNothing);
  if (!file->tells_end()) {
    SayNothingToTell(kLeaksCommand, *file,
                     "its dumps are of the maximum (--dump-at-max), not of the end");
    return static_cast<int>(kExitNothing);
  }
  const ChosenHeap heap = LargestHeap(*file, "");
  if (!heap.heap->told.live_size) {
    SayNothingToTell(kLeaksCommand, *file, "it does not tell what is live");
    return static_cast<int>(kExitNothing);
  }
  const Leaks leaks = FindLeaks(*file, heap, &filter);
  if (filter.newest_percent > 0 && leaks.live > 0 && !leaks.tells_ages)
    return Invalid(
        "cannot leave out the newest blocks: " + options.files[0] +
        " does not tell how old they are, which recordings of heap_profile do; leave "
        "out --leave-out-newest");
  if (options.json)
    PrintJson(heap, leaks, filter);
  else
    PrintTable(heap, leaks, filter, options.top);
  return static_cast<int>(kExitOk);
}

}  // namespace

CommandLine LeaksLine() {
  const auto options = std::make_shared<LeaksOptions>();
  return {.text = {.name = kLeaksCommand,
                   .summary = "Shows stacks whose memory grows from dump to dump, or of "
                              "which nothing was ever freed.",
                   .usage = "heap_profile leaks [--json] [--top N] [--leave-out-newest "
                            "PERCENT]\n       [--suppressions FILE] FILE",
                   .epilogue =
                       kReadableFiles +
                       std::string(
                           "The largest heap of the file is looked at, as on the page "
                           "Leaks of its report.\nGrowth takes three dumps: heap_profile "
                           "-c MS, heap_profile mark NAME. The exit\ncode is 4 when the "
                           "file has nothing to look at.\n")},
          .flags = LeaksFlags(*options),
          .take_word = TakeWords(&options->files),
          .run = [options] { return RunLeaks(*options); }};
}

}  // namespace heapprofd
