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
#include "cli/hprof/class_sums.h"
#include "cli/hprof/compare_report.h"
#include "cli/hprof/examined_dump.h"
#include "cli/hprof/leak_report.h"
#include "cli/hprof/object_report.h"
#include "cli/hprof/report_parts.h"
#include "cli/hprof/string_report.h"
#include "cli/hprof/thread_report.h"

namespace heapprofd {
namespace {

using nlohmann::json;

// Of a table; one more to the right.
std::string AlignedNumber(const std::string& text) {
  constexpr size_t kWidth = 15;
  return std::string(kWidth - std::min(kWidth, text.size()), ' ') + text;
}

// Objects that `above` dominates immediately, those that retain most first.
std::vector<uint32_t> DominatedBy(const Examined& examined, uint32_t above) {
  std::vector<uint32_t> objects;
  for (const uint32_t object : examined.tree.order) {
    if (examined.tree.dominator[object] == above)
      objects.push_back(object);
  }
  std::stable_sort(objects.begin(), objects.end(), [&](uint32_t a, uint32_t b) {
    return examined.retained[a] > examined.retained[b];
  });
  return objects;
}

Status PrintHistogram(OpenedDump& opened, const HprofView& view) {
  HPD_TRY_ASSIGN(const ClassSums sums, SumClasses(&opened, view.retained));
  const size_t shown = Shown(sums.rows.size(), view);
  if (view.json) {
    json list = json::array();
    for (size_t i = 0; i < shown; ++i)
      list.push_back(JsonOf(sums.rows[i], view.retained));
    PrintJson(opened, "classes", std::move(list), JsonOf(sums, view.retained));
    return {};
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
  return {};
}

Status PrintDominators(OpenedDump& opened, const HprofView& view) {
  HPD_TRY_ASSIGN(const Examined examined, Examine(&opened));
  uint32_t above = kHeldByRoots;
  if (!view.object.empty()) {
    HPD_TRY_ASSIGN(above, FindObject(examined, view.object));
  }
  const std::vector<uint32_t> objects = DominatedBy(examined, above);
  const size_t shown = Shown(objects.size(), view);
  if (view.json) {
    json list = json::array();
    for (size_t i = 0; i < shown; ++i)
      list.push_back(JsonOf(examined, opened, objects[i]));
    PrintJson(opened, "objects", std::move(list), {{"reachable_bytes", examined.total}});
    return {};
  }
  PrintTotal(opened, examined.tree.order.size(), examined.total);
  Print(stdout, "%14s %6s %10s  %s\n", "retained", "share", "bytes", "object");
  for (size_t i = 0; i < shown; ++i) {
    const uint64_t retained = examined.retained[objects[i]];
    Print(stdout, "%14llu %6s %10llu  %s\n", static_cast<unsigned long long>(retained),
          FormatShare(static_cast<double>(retained), static_cast<double>(examined.total))
              .c_str(),
          static_cast<unsigned long long>(examined.heap.graph.SizeOf(objects[i])),
          TitleOf(examined, opened, objects[i]).c_str());
  }
  return {};
}

Status PrintPath(OpenedDump& opened, const HprofView& view) {
  HPD_TRY_ASSIGN(const Examined examined, Examine(&opened));
  HPD_TRY_ASSIGN(const uint32_t object, FindObject(examined, view.object));
  const HoldingPath path = HoldingPaths(opened, examined, {object})[0];
  if (view.json)
    PrintJson(opened, "path", JsonOf(examined, opened, path), {{"root", path.root}});
  else if (path.steps.empty())
    Print(stdout, "%s is not held by any root: it is garbage\n", view.object.c_str());
  else
    PrintSteps(examined, opened, path);
  return {};
}

Status PrintAsAsked(OpenedDump& opened,
                    std::optional<OpenedDump> older,
                    const HprofView& view) {
  if (view.verb == "histogram")
    return PrintHistogram(opened, view);
  if (view.verb == "dominators")
    return PrintDominators(opened, view);
  if (view.verb == "strings")
    return PrintStrings(opened, view);
  if (view.verb == "threads")
    return PrintThreads(opened, view);
  if (view.verb == "object")
    return PrintObject(opened, view);
  if (older)
    return PrintComparison(std::move(*older), opened, view);
  return view.verb == "leaks" ? PrintLeaks(opened, view) : PrintPath(opened, view);
}

}  // namespace

bool IsView(const std::string& verb) {
  constexpr std::array<std::string_view, 8> kViews = {"histogram", "leaks",  "dominators",
                                                      "path",      "object", "compare",
                                                      "strings",   "threads"};
  return std::find(kViews.begin(), kViews.end(), verb) != kViews.end();
}

Status SetObject(const std::vector<std::string>& words, HprofView* view) {
  const bool needs_object =
      view->verb == "path" || view->verb == "object" || view->verb == "compare";
  const bool takes_object = needs_object || view->verb == "dominators";
  if (words.size() > (takes_object ? 1 : 0) || words.size() < (needs_object ? 1 : 0))
    return Invalid("cannot show " + view->verb + ": " +
                   (view->verb == "compare" ? "one older dump is needed"
                    : needs_object          ? "one object is needed"
                    : takes_object          ? "at most one object can be named"
                                            : "it is of no single object") +
                   "; --help shows how");
  view->object = words.empty() ? "" : words[0];
  return {};
}

Result<std::optional<OpenedDump>> OpenOlder(const HprofView& view) {
  if (view.verb != "compare")
    return std::optional<OpenedDump>();
  HPD_TRY_ASSIGN(OpenedDump older, OpenDump(view.object, 0));
  return std::optional<OpenedDump>(std::move(older));
}

Status PrintView(OpenedDump& opened,
                 std::optional<OpenedDump> older,
                 const HprofView& view) {
  Status status = PrintAsAsked(opened, std::move(older), view);
  HPD_TRY(opened.input.Check());
  for (const std::string& note : opened.notes)
    Print(stderr, "%s: %s\n", opened.path.c_str(), note.c_str());
  return status;
}

}  // namespace heapprofd
