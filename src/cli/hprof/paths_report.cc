#include "cli/hprof/paths_report.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/print.h"
#include "base/text.h"
#include "cli/hprof/report_parts.h"
#include "object_graph/paths.h"

namespace heapprofd {
namespace {

using nlohmann::json;

constexpr size_t kMostIndent = 60;  // columns; ways can be thousands of steps long

// Groups are types, and behind them the classes themselves: what a static field holds is
// held by its class, and not by all.
class TypeGroups {
 public:
  explicit TypeGroups(const LoadedHeap& heap)
      : graph_(heap.graph()), classes_(heap.ClassObjects()) {}

  uint32_t Of(uint32_t object) const {
    const auto found =
        std::ranges::lower_bound(classes_, object, {}, &ClassObject::object);
    const bool is_class = found != classes_.end() && found->object == object;
    const auto types = static_cast<uint32_t>(graph_.types().size());
    return is_class ? types + static_cast<uint32_t>(found - classes_.begin())
                    : graph_.TypeOf(object);
  }

  std::string NameOf(uint32_t group) const {
    const auto types = static_cast<uint32_t>(graph_.types().size());
    return group < types ? graph_.types()[group].name
                         : "class " + std::string(classes_[group - types].name);
  }

 private:
  const ObjectGraph& graph_;
  const std::vector<ClassObject> classes_;  // by object
};

// The order in which they are shown: each below the one above it, those with most objects
// first; and how deep each is.
std::vector<std::pair<uint32_t, uint32_t>> InOrder(const std::vector<MergedWay>& ways) {
  std::vector<std::vector<uint32_t>> below(ways.size() + 1);  // the last one: of roots
  for (uint32_t i = 0; i < ways.size(); ++i)
    below[std::min<size_t>(ways[i].above, ways.size())].push_back(i);
  for (std::vector<uint32_t>& steps : below) {
    // The last one is taken first: of equal ones that with the lower number.
    std::sort(steps.begin(), steps.end(), [&ways](uint32_t a, uint32_t b) {
      return std::tuple(ways[a].objects, ways[a].bytes, b) <
             std::tuple(ways[b].objects, ways[b].bytes, a);
    });
  }
  std::vector<std::pair<uint32_t, uint32_t>> order;  // way, depth
  std::vector<std::pair<uint32_t, uint32_t>> next;
  for (const uint32_t way : below.back())
    next.emplace_back(way, 0);
  while (!next.empty()) {
    const auto [way, depth] = next.back();
    next.pop_back();
    order.emplace_back(way, depth);
    for (const uint32_t step : below[way])
      next.emplace_back(step, depth + 1);
  }
  return order;
}

struct ClassPaths {
  std::vector<MergedWay> ways;
  bool is_whole = true;  // false: so many that some end too early
  std::vector<std::pair<uint32_t, uint32_t>> order;  // of the ways, and how deep each is
  uint64_t all = 0;                                  // objects of the class
  uint64_t held = 0;                                 // of these
};

ClassPaths PathsTo(const std::string& name,
                   const ObjectGraph& graph,
                   const TypeGroups& groups) {
  const std::vector<bool> is_type_meant = TypesNamed(graph, name);
  const auto is_meant = [&](uint32_t object) {
    return is_type_meant[graph.TypeOf(object)];
  };
  ClassPaths paths;
  for (uint32_t object = 0; object < graph.object_count(); ++object)
    paths.all += is_meant(object) ? 1u : 0u;
  MergedWays merged = MergeNearestPaths(
      graph, is_meant, [&](uint32_t object) { return groups.Of(object); });
  paths.ways = std::move(merged.ways);
  paths.is_whole = merged.is_whole;
  for (const MergedWay& way : paths.ways)
    paths.held += way.above == MergedWay::kTop ? way.objects : 0;
  paths.order = InOrder(paths.ways);
  return paths;
}

void PrintAsJson(const OpenedDump& opened,
                 const ClassPaths& paths,
                 const TypeGroups& groups,
                 size_t shown) {
  json list = json::array();
  for (size_t i = 0; i < shown; ++i) {
    const auto [at, depth] = paths.order[i];
    const MergedWay& way = paths.ways[at];
    list.push_back({{"depth", depth},
                    {"name", groups.NameOf(way.group)},
                    {"objects", way.objects},
                    {"bytes", way.bytes}});
  }
  PrintJson(opened, "ways", std::move(list),
            {{"all_ways", paths.order.size()},
             {"all_objects", paths.all},
             {"held_objects", paths.held},
             {"is_whole", paths.is_whole}});
}

void PrintAsTable(const std::string& name,
                  const ClassPaths& paths,
                  const TypeGroups& groups,
                  size_t shown) {
  Print(stdout, "%s of %s, of which %s held\n\n",
        FormatCounted(static_cast<double>(paths.all), "object", "objects").c_str(),
        Printable(name).c_str(),
        FormatCounted(static_cast<double>(paths.held), "is", "are").c_str());
  Print(stdout, "%12s %14s  %s\n", "objects", "bytes", "way, from the root");
  for (size_t i = 0; i < shown; ++i) {
    const auto [at, depth] = paths.order[i];
    const MergedWay& way = paths.ways[at];
    const std::string indent(std::min<size_t>(size_t{2} * depth, kMostIndent), ' ');
    Print(stdout, "%12llu %14llu  %s%s\n", static_cast<unsigned long long>(way.objects),
          static_cast<unsigned long long>(way.bytes), indent.c_str(),
          Printable(groups.NameOf(way.group)).c_str());
  }
  if (shown < paths.order.size())
    Print(stdout, "%zu more; --top 0 shows all\n", paths.order.size() - shown);
}

}  // namespace

// Who dominates whom, which Examine finds, is not asked here.
Status PrintMergedPaths(OpenedDump& opened, const HprofView& view) {
  HPD_TRY_ASSIGN(const std::unique_ptr<LoadedHeap> heap, LoadHeap(&opened));
  const TypeGroups groups(*heap);
  const ClassPaths paths = PathsTo(view.object, heap->graph(), groups);
  if (paths.all == 0)
    return Status(StatusCode::kNotFound,
                  "cannot find " + view.object +
                      " in the dump: no object has this class; heap_profile hprof "
                      "histogram --top 0 lists the classes");
  if (!paths.is_whole)
    opened.notes.push_back("there are more than " + std::to_string(kMostMergedWays) +
                           " different ways: what is beyond counts for the last step "
                           "of them that is listed");
  const size_t shown = Shown(paths.order.size(), view);
  if (view.json)
    PrintAsJson(opened, paths, groups, shown);
  else
    PrintAsTable(view.object, paths, groups, shown);
  return {};
}

}  // namespace heapprofd
