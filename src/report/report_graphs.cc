#include "report/report_graphs.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include <nlohmann/json.hpp>

#include "query/graph_tree.h"
#include "report/report_tree.h"

namespace heapprofd {
namespace {

using nlohmann::json;

constexpr size_t kLeastGraphNodes = 1000;
constexpr size_t kMostGraphNodes = size_t{1} << 20;
constexpr uint32_t kMostGraphDepth = 500;  // as in pprof profiles: lists can be long

constexpr std::array<std::pair<GraphHierarchy, const char*>, 2> kHierarchies = {
    {{GraphHierarchy::kShortestPaths, "managed, by path to root"},
     {GraphHierarchy::kDominators, "managed, by dominator (retained)"}}};

struct HeldAndNot {
  FlameValues held;
  FlameValues garbage;
};

HeldAndNot SumObjects(const HeapGraphTables& tables, const ImportedHeapGraph& graph) {
  HeldAndNot sums;
  for (uint32_t i = 0; i < graph.object_count; ++i) {
    const size_t row = size_t{graph.first_object} + i;
    const int64_t native = tables.objects.native_size[row];
    // What it owns outside the heap is one more, as in trees and in SQL.
    (tables.objects.root_distance[row] >= 0 ? sums.held : sums.garbage) +=
        FlameValues{native == 0 ? 1 : 2, tables.objects.self_size[row] + native, 0, 0};
  }
  return sums;
}

// With a value for each of the columns; what is not named is NULL.
json RowOf(const json& columns, const json& values) {
  json row = json::array();
  for (const json& column : columns)
    row.push_back(values.value(column.get<std::string>(), json()));
  return row;
}

json DumpOf(const ImportedTrace& trace, uint32_t row) {
  const ImportedHeapGraph& graph = trace.heap_graph.graphs[row];
  const HeldAndNot sums = SumObjects(trace.heap_graph, graph);
  return {{"ts", graph.ts},
          {"upid", graph.upid},
          {"live_size", sums.held.size},
          {"live_count", sums.held.count},
          {"alloc_size", 0},
          {"alloc_count", 0},
          {"is_peak", 0},
          {"is_complete", graph.truncated ? 0 : 1},
          {"unreachable_size", sums.garbage.size},
          {"unreachable_count", sums.garbage.count}};
}

class GraphAppender {
 public:
  GraphAppender(TraceDatabase& database,
                ReportFunctions& functions,
                json* facts,
                std::string& out)
      : database_(database), functions_(functions), facts_(*facts), out_(out) {
    for (const char* column : {"unreachable_size", "unreachable_count"})
      facts_["dumps"]["columns"].push_back(column);
  }

  // Gives the number of nodes, which are at most `most`.
  Result<size_t> Append(uint32_t graph, size_t hierarchy, size_t most) {
    const GraphTreeOptions options = {.hierarchy = kHierarchies[hierarchy].first,
                                      .naming = GraphNaming::kClasses,
                                      .max_nodes = kMostGraphNodes,
                                      .max_depth = kMostGraphDepth};
    const ImportedTrace& trace = database_.trace();
    HPD_TRY_ASSIGN(const GraphTree made,
                   BuildGraphTree(trace, {&graph, 1}, options, database_.cancel_flag()));
    const uint32_t nodes = AppendReportTree(made.tree, {most}, functions_, out_);
    const size_t id = trace.dumps.size() + graph * kHierarchies.size() + hierarchy;
    facts_["trees"].push_back({{"dump", id},
                               {"is_peak", false},
                               {"is_whole", made.tree.nodes.size() <= most},
                               {"is_folded", made.is_folded},
                               {"has_errors", false},
                               {"nodes", nodes}});
    json dump = DumpOf(trace, graph);
    dump["id"] = id;
    dump["heap_name"] = kHierarchies[hierarchy].second;
    json& dumps = facts_["dumps"];
    dumps["rows"].push_back(RowOf(dumps["columns"], dump));
    return nodes;
  }

 private:
  TraceDatabase& database_;
  ReportFunctions& functions_;
  json& facts_;
  std::string& out_;
};

}  // namespace

ReportRoom LeastRoomForGraphs(const ImportedTrace& trace) {
  if (trace.heap_graph.graphs.empty())
    return {};
  return {kHierarchies.size() * kLeastGraphNodes, kHierarchies.size()};
}

Status AppendGraphs(TraceDatabase& database,
                    ReportRoom room,
                    ReportFunctions& functions,
                    json* facts,
                    std::string& out) {
  const size_t all = database.trace().heap_graph.graphs.size();
  const ReportRoom least = LeastRoomForGraphs(database.trace());
  if (all == 0)
    return {};
  const size_t chosen =
      std::min({all, room.trees / least.trees, room.nodes / least.nodes});
  if (chosen == 0)
    return {};
  GraphAppender appender(database, functions, facts, out);
  const size_t trees = chosen * kHierarchies.size();
  for (size_t at = 0; at < trees; ++at) {
    const auto graph = static_cast<uint32_t>(all - 1 - at / kHierarchies.size());
    HPD_TRY_ASSIGN(const size_t nodes, appender.Append(graph, at % kHierarchies.size(),
                                                       room.nodes / (trees - at)));
    room.nodes -= std::min(room.nodes, nodes);
  }
  return {};
}

}  // namespace heapprofd
