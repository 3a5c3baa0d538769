#include "cli/hprof/hprof_report.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/print.h"
#include "cli/flag_values.h"
#include "cli/hprof/class_sums.h"
#include "cli/hprof/collection_report.h"
#include "cli/hprof/compare_report.h"
#include "cli/hprof/examined_dump.h"
#include "cli/hprof/find_report.h"
#include "cli/hprof/leak_report.h"
#include "cli/hprof/loader_report.h"
#include "cli/hprof/object_report.h"
#include "cli/hprof/paths_report.h"
#include "cli/hprof/report_parts.h"
#include "cli/hprof/string_report.h"
#include "cli/hprof/thread_report.h"
#include "cli/memory_budget.h"

namespace heapprofd {
namespace {

using nlohmann::json;

// Of a table; one more to the right.
std::string AlignedNumber(const std::string& text) {
  constexpr size_t kWidth = 15;
  return std::string(kWidth - std::min(kWidth, text.size()), ' ') + text;
}

// Those of the objects that `above` dominates immediately that retain most, as many as
// are shown.
std::vector<uint32_t> DominatedBy(const Examined& examined,
                                  uint32_t above,
                                  const HprofView& view) {
  std::vector<uint32_t> objects;
  for (uint32_t object = 0; object < examined.heap->graph().object_count(); ++object) {
    if (examined.retention.DominatorOf(object) == above)
      objects.push_back(object);
  }
  const size_t shown = Shown(objects.size(), view);
  const auto end = objects.begin() + static_cast<ptrdiff_t>(shown);
  std::partial_sort(objects.begin(), end, objects.end(), [&](uint32_t a, uint32_t b) {
    const uint64_t bytes = examined.retention.RetainedBy(a);
    const uint64_t others = examined.retention.RetainedBy(b);
    return bytes != others ? bytes > others : a < b;
  });
  objects.resize(shown);
  return objects;
}

void PrintSums(const OpenedDump& opened, const ClassSums& sums, const HprofView& view) {
  const size_t shown = Shown(sums.rows.size(), view);
  if (view.json) {
    json list = json::array();
    for (size_t i = 0; i < shown; ++i)
      list.push_back(JsonOf(sums.rows[i], view.retained));
    PrintJson(opened, "classes", std::move(list), JsonOf(sums, view.retained));
    return;
  }
  PrintTotal(opened, sums.objects, sums.bytes);
  const std::string retained = view.retained ? AlignedNumber("retained") : "";
  Print(stdout, "%12s %14s%s  %s\n", "objects", "bytes", retained.c_str(), "class");
  for (size_t i = 0; i < shown; ++i) {
    const ClassRow& row = sums.rows[i];
    Print(stdout, "%12llu %14llu%s  %s\n", static_cast<unsigned long long>(row.objects),
          static_cast<unsigned long long>(row.bytes),
          view.retained ? AlignedNumber(std::to_string(row.retained)).c_str() : "",
          row.name.c_str());
  }
}

Status PrintHistogram(OpenedDump& opened, const HprofView& view) {
  HPD_TRY_ASSIGN(const ClassSums sums, SumClasses(&opened, view.retained));
  PrintSums(opened, sums, view);
  return {};
}

Status PrintUnreachable(OpenedDump& opened, const HprofView& view) {
  HPD_TRY_ASSIGN(const ClassSums sums, SumUnreachable(&opened));
  HprofView plain = view;
  plain.retained = false;  // it is 0
  PrintSums(opened, sums, plain);
  return {};
}

Status PrintDominators(OpenedDump& opened, const HprofView& view) {
  HPD_TRY_ASSIGN(const Examined examined, Examine(&opened));
  uint32_t above = kHeldByRoots;
  if (!view.object.empty()) {
    HPD_TRY_ASSIGN(above, FindObject(examined, view.object));
  }
  const std::vector<uint32_t> objects = DominatedBy(examined, above, view);
  if (view.json) {
    json list = json::array();
    for (const uint32_t object : objects)
      list.push_back(JsonOf(examined, object));
    PrintJson(opened, "objects", std::move(list),
              {{"reachable_bytes", examined.retention.reachable_bytes()}});
    return {};
  }
  PrintTotal(opened, examined.retention.reachable_count(),
             examined.retention.reachable_bytes());
  Print(stdout, "%14s %6s %10s  %s\n", "retained", "share", "bytes", "object");
  for (const uint32_t object : objects) {
    const uint64_t retained = examined.retention.RetainedBy(object);
    Print(stdout, "%14llu %6s %10llu  %s\n", static_cast<unsigned long long>(retained),
          FormatShare(static_cast<double>(retained),
                      static_cast<double>(examined.retention.reachable_bytes()))
              .c_str(),
          static_cast<unsigned long long>(examined.heap->graph().SizeOf(object)),
          TitleOf(examined, object).c_str());
  }
  return {};
}

Status PrintPath(OpenedDump& opened, const HprofView& view) {
  HPD_TRY_ASSIGN(const Examined examined, Examine(&opened));
  HPD_TRY_ASSIGN(const uint32_t object, FindObject(examined, view.object));
  const HoldingPath path = HoldingPaths(examined, {object})[0];
  if (view.json)
    PrintJson(opened, "path", JsonOf(examined, path), {{"root", path.root}});
  else if (path.steps.empty())
    Print(stdout, "%s is not held by any root%s\n", view.object.c_str(),
          opened.is_damaged ? " that could be read" : ": it is garbage");
  else
    PrintSteps(examined, path);
  return {};
}

// What there is to see. What is added here is there in hprof and in java, and in the help
// of both.
struct ViewKind {
  const char* verb;
  const char* flags;  // own ones, for the usage
  const char* words;  // behind it and the dump, for the usage
  size_t fewest_words;
  size_t most_words;
  const char* needs;  // when there are more or fewer
  Status (*print)(OpenedDump& opened, const HprofView& view);  // nullptr: compare
  const char* help;
  bool needs_dump = false;  // and not only the graph of objects
};

constexpr char kCompare[] = "compare";
constexpr char kNoObjectNeeded[] = "it is of no single object";
constexpr char kOneObject[] = "one object is needed";

constexpr std::array<ViewKind, 13> kViewKinds = {{
    {"histogram", "[--retained]", "", 0, 0, kNoObjectNeeded, PrintHistogram,
     "objects and bytes of each class; --retained: what would be freed"},
    {"leaks", "", "", 0, 0, kNoObjectNeeded, PrintLeaks,
     "where memory has piled up, what of, and what holds it"},
    {"dominators", "", "[ADDRESS|CLASS]", 0, 1, "at most one object can be named",
     PrintDominators, "the objects that retain most; of one: what it alone holds"},
    {"path", "", "ADDRESS|CLASS", 1, 1, kOneObject, PrintPath,
     "the shortest way from a root to an object: why it is there"},
    {"object", "", "ADDRESS|CLASS", 1, 1, kOneObject, PrintObject,
     "what is in an object: values of fields, elements of arrays"},
    {"paths", "", "CLASS", 1, 1, "one class is needed", PrintMergedPaths,
     "the ways from roots to all objects of a class, merged by class"},
    {"find", "[--retained]", "CLASS [FIELD=VALUE]...", 1, SIZE_MAX,
     "a class is needed, in which * stands for anything", PrintFound,
     "objects by class, fields (FIELD=VALUE), texts (FIELD~TEXT)"},
    {kCompare, "[--retained]", "OLDER", 1, 1, "one older dump is needed", nullptr,
     "what classes have more and less from one dump to another"},
    {"strings", "", "", 0, 0, kNoObjectNeeded, PrintStrings,
     "texts that are there several times, and what that wastes", true},
    {"threads", "", "", 0, 0, kNoObjectNeeded, PrintThreads,
     "what threads were doing, and what they and their stacks hold", true},
    {"collections", "", "", 0, 0, kNoObjectNeeded, PrintCollections,
     "how full arrays of lists, maps and others are", true},
    {"loaders", "", "", 0, 0, kNoObjectNeeded, PrintLoaders,
     "class loaders, their objects and what they retain"},
    {"unreachable", "", "", 0, 0, kNoObjectNeeded, PrintUnreachable,
     "objects and bytes of each class that nothing holds"},
}};

// nullptr: there is none.
const ViewKind* ViewKindOf(const std::string& verb) {
  const auto* const kind =
      std::find_if(kViewKinds.begin(), kViewKinds.end(),
                   [&verb](const ViewKind& candidate) { return verb == candidate.verb; });
  return kind == kViewKinds.end() ? nullptr : kind;
}

Status SetHolding(const std::string& value, hprof::Holding* holding) {
  constexpr std::pair<const char*, hprof::Holding> kKinds[] = {
      {"strong", hprof::Holding::kStrong},
      {"soft", hprof::Holding::kSoft},
      {"weak", hprof::Holding::kWeak}};
  for (const auto& [name, kind] : kKinds) {
    if (value == name) {
      *holding = kind;
      return {};
    }
  }
  return Invalid("cannot use --holding " + value + ": it is strong, soft or weak");
}

}  // namespace

bool IsView(const std::string& verb) {
  return ViewKindOf(verb) != nullptr;
}

std::vector<CommandWord> ViewWords() {
  std::vector<CommandWord> words;
  words.reserve(kViewKinds.size());
  for (const ViewKind& kind : kViewKinds)
    words.push_back({kind.verb, kind.help});
  return words;
}

bool HasSameWords(const ViewKind& a, const ViewKind& b) {
  return std::string_view(a.flags) == b.flags && std::string_view(a.words) == b.words;
}

std::string ViewUsage(const std::string& command, const std::string& file) {
  constexpr size_t kVerbsOfLine = 3;
  std::string usage;
  size_t verbs = 0;  // that are said already of those with the same words
  for (size_t i = 0; i < std::size(kViewKinds); ++i) {
    const ViewKind& kind = kViewKinds[i];
    usage += verbs > 0 ? "|" : (usage.empty() ? "" : "\n") + command + " ";
    usage += kind.verb;
    if (i + 1 < std::size(kViewKinds) && ++verbs < kVerbsOfLine &&
        HasSameWords(kind, kViewKinds[i + 1]))
      continue;
    verbs = 0;
    const bool is_older_first = kind.verb == std::string_view(kCompare);
    for (const std::string& part :
         {std::string(kind.flags), is_older_first ? kind.words : file,
          is_older_first ? file : kind.words})
      usage += part.empty() ? "" : " " + part;
  }
  return usage;
}

std::vector<Flag> DumpViewFlags(const std::string& group, HprofView* view) {
  return {{.name = "retained",
           .help = "histogram, find, compare: what would be freed too.",
           .group = group,
           .apply = Switch(&view->retained)},
          {.name = "holding",
           .value_name = "KIND",
           .help = "References that hold: strong, soft or weak.",
           .details = "strong: soft references hold nothing, as when memory is short. "
                      "soft: as usual, and when nothing is said. weak: weak, phantom and "
                      "finalizer references hold, too, so that a path tells who knows an "
                      "object.",
           .group = group,
           .apply =
               [view](const std::string& value) {
                 return SetHolding(value, &view->holding);
               }},
          {.name = "top",
           .value_name = "N",
           .help = "So many rows, 20 when not said; 0: all.",
           .group = group,
           .apply = NumberValue("--top", &view->top, UINT64_MAX, "a whole number")},
          MemoryBudgetFlag(group, &view->memory_budget),
          {.name = "json",
           .help = "For programs.",
           .group = group,
           .apply = Switch(&view->json)}};
}

Status SetObject(const std::vector<std::string>& words, HprofView* view) {
  const ViewKind& kind = *ViewKindOf(view->verb);
  if (words.size() > kind.most_words || words.size() < kind.fewest_words)
    return Invalid("cannot show " + view->verb + ": " + kind.needs +
                   "; --help shows how");
  view->object = words.empty() ? "" : words[0];
  for (size_t i = 1; i < words.size(); ++i) {
    HPD_TRY_ASSIGN(hprof::FieldCondition condition, hprof::ParseCondition(words[i]));
    view->conditions.push_back(std::move(condition));
  }
  return {};
}

Result<std::optional<OpenedDump>> OpenOlder(const HprofView& view) {
  if (view.verb != kCompare)
    return std::optional<OpenedDump>();
  HPD_TRY_ASSIGN(OpenedDump older, OpenDump(view.object, view.older_dump, view.process));
  return std::optional<OpenedDump>(std::move(older));
}

Status PrintView(OpenedDump& opened,
                 std::optional<OpenedDump> older,
                 const HprofView& view) {
  if (opened.is_of_trace() && ViewKindOf(view.verb)->needs_dump)
    return Invalid("cannot show " + view.verb + " of " + opened.path +
                   ": a heap graph of a trace has no field values, texts or stacks; " +
                   kTakeDump);
  opened.holding = view.holding;
  if (older)
    older->holding = view.holding;
  Status status = older ? PrintComparison(std::move(*older), opened, view)
                        : ViewKindOf(view.verb)->print(opened, view);
  HPD_TRY(opened.Check());
  PrintNotes(opened);
  return status;
}

}  // namespace heapprofd
