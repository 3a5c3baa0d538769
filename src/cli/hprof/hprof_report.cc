#include "cli/hprof/hprof_report.h"

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/print.h"
#include "cli/hprof/examined_dump.h"
#include "cli/hprof/leak_report.h"
#include "cli/hprof/report_parts.h"
#include "hprof/histogram.h"

namespace heapprofd {
namespace {

using nlohmann::json;

struct RetainedRow {
  hprof::HistogramRow row;
  uint64_t retained = 0;
};

// By type: the first one of the same name. Different loaders may have loaded the others.
std::vector<uint32_t> FirstOfName(const ObjectGraph& graph) {
  std::unordered_map<std::string_view, uint32_t> first_of;
  std::vector<uint32_t> first;
  for (const ObjectType& type : graph.types())
    first.push_back(first_of.try_emplace(type.name, static_cast<uint32_t>(first.size()))
                        .first->second);
  return first;
}

std::vector<RetainedRow> RetainedHistogram(const Examined& examined) {
  const ObjectGraph& graph = examined.heap.graph;
  const std::vector<uint32_t> row_of = FirstOfName(graph);
  const std::vector<uint64_t> retained =
      RetainedByGroup(graph, examined.tree, examined.retained, row_of);
  std::vector<RetainedRow> rows(row_of.size());
  for (uint32_t object = 0; object < graph.object_count(); ++object) {
    hprof::HistogramRow& row = rows[row_of[graph.TypeOf(object)]].row;
    ++row.objects;
    row.bytes += graph.SizeOf(object);
  }
  for (size_t type = 0; type < rows.size(); ++type) {
    rows[type].row.name = graph.types()[type].name;
    rows[type].retained = retained[type];
  }
  std::erase_if(rows, [](const RetainedRow& row) { return row.row.objects == 0; });
  std::sort(rows.begin(), rows.end(), [](const RetainedRow& a, const RetainedRow& b) {
    return a.retained > b.retained;
  });
  return rows;
}

Status PrintRetainedHistogram(OpenedDump& opened, const HprofView& view) {
  HPD_TRY_ASSIGN(const Examined examined, Examine(&opened));
  const std::vector<RetainedRow> rows = RetainedHistogram(examined);
  const size_t shown = Shown(rows.size(), view);
  const uint64_t objects = examined.heap.graph.object_count();
  uint64_t bytes = 0;
  for (const RetainedRow& row : rows)
    bytes += row.row.bytes;
  if (view.json) {
    json list = json::array();
    for (size_t i = 0; i < shown; ++i)
      list.push_back({{"class", rows[i].row.name},
                      {"objects", rows[i].row.objects},
                      {"bytes", rows[i].row.bytes},
                      {"retained", rows[i].retained}});
    PrintJson(
        opened, "classes", std::move(list),
        {{"objects", objects}, {"bytes", bytes}, {"reachable_bytes", examined.total}});
    return {};
  }
  PrintTotal(opened, objects, bytes);
  Print(stdout, "%12s %12s %14s  %s\n", "objects", "bytes", "retained", "class");
  for (size_t i = 0; i < shown; ++i)
    Print(stdout, "%12llu %12llu %14llu  %s\n",
          static_cast<unsigned long long>(rows[i].row.objects),
          static_cast<unsigned long long>(rows[i].row.bytes),
          static_cast<unsigned long long>(rows[i].retained), rows[i].row.name.c_str());
  return {};
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
  if (view.retained)
    return PrintRetainedHistogram(opened, view);
  const hprof::HeapCensus census = TakeCensus(opened.file, *opened.dump);
  AddDamage(census, &opened);
  const std::vector<hprof::HistogramRow> rows = MakeHistogram(opened.file, census);
  uint64_t bytes = 0;
  for (const hprof::HistogramRow& row : rows)
    bytes += row.bytes;
  const size_t shown = Shown(rows.size(), view);
  if (view.json) {
    json list = json::array();
    for (size_t i = 0; i < shown; ++i)
      list.push_back({{"class", rows[i].name},
                      {"objects", rows[i].objects},
                      {"bytes", rows[i].bytes}});
    PrintJson(opened, "classes", std::move(list),
              {{"objects", census.objects}, {"bytes", bytes}});
    return {};
  }
  PrintTotal(opened, census.objects, bytes);
  Print(stdout, "%12s %14s  %s\n", "objects", "bytes", "class");
  for (size_t i = 0; i < shown; ++i)
    Print(stdout, "%12llu %14llu  %s\n", static_cast<unsigned long long>(rows[i].objects),
          static_cast<unsigned long long>(rows[i].bytes), rows[i].name.c_str());
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

Status PrintAsAsked(OpenedDump& opened, const HprofView& view) {
  if (view.verb == "histogram")
    return PrintHistogram(opened, view);
  if (view.verb == "dominators")
    return PrintDominators(opened, view);
  return view.verb == "leaks" ? PrintLeaks(opened, view) : PrintPath(opened, view);
}

}  // namespace

bool IsView(const std::string& verb) {
  return verb == "histogram" || verb == "leaks" || verb == "dominators" || verb == "path";
}

Status SetObject(const std::vector<std::string>& words, HprofView* view) {
  const bool needs_object = view->verb == "path";
  const bool takes_object = needs_object || view->verb == "dominators";
  if (words.size() > (takes_object ? 1 : 0) || words.size() < (needs_object ? 1 : 0))
    return Invalid("cannot show " + view->verb + ": " +
                   (needs_object   ? "one object is needed"
                    : takes_object ? "at most one object can be named"
                                   : "it is of no single object") +
                   "; heap_profile hprof --help shows how");
  view->object = words.empty() ? "" : words[0];
  return {};
}

Status PrintView(OpenedDump& opened, const HprofView& view) {
  Status status = PrintAsAsked(opened, view);
  HPD_TRY(opened.input.Check());
  for (const std::string& note : opened.notes)
    Print(stderr, "%s: %s\n", opened.path.c_str(), note.c_str());
  return status;
}

}  // namespace heapprofd
