#include "export/heap_graph_pprof.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "export/pprof_message.h"
#include "export/selection.h"
#include "query/graph_tree.h"

namespace heapprofd {
namespace {

constexpr uint64_t kMapping = 1;

// A list of a million elements is a path of as many: what hangs on longer ones is counted
// where they are cut.
constexpr uint32_t kMaxDepth = 500;

class GraphEncoder {
 public:
  GraphEncoder(const ImportedTrace& trace,
               const ImportedHeapGraph& graph,
               const PprofOutput& output)
      : trace_(trace), graph_(graph), message_(output) {}

  void Encode(FlameTree tree) {
    CutPaths(tree);
    message_.AddSampleType("objects", "count");
    message_.AddSampleType("space", "bytes");
    message_.AddMapping({.id = kMapping,
                         .start = 0,
                         .end = 0,
                         .file_offset = 0,
                         .path = "[java heap]",
                         .build_id = "",
                         .features = {.functions = true}});
    std::vector<uint64_t> locations;
    for (size_t row = 0; row < tree.nodes.size(); ++row) {
      const FlameValues self = tree.SelfOf(row);
      if (self.IsZero())
        continue;
      locations.clear();
      for (size_t at = row; at != kNoId; at = tree.nodes[at].parent)
        locations.push_back(LocationOf(tree.NameOf(at)));
      const int64_t values[] = {self.count, self.size};
      message_.AddSample(locations, values);
    }
    message_.Finish(Header());
  }

 private:
  // Children come behind their parents.
  void CutPaths(FlameTree& tree) {
    for (size_t row = tree.nodes.size(); row-- > 0;) {
      FlameNode& node = tree.nodes[row];
      if (tree.depths[row] < kMaxDepth)
        continue;
      tree.AddSelf(node.parent, tree.SelfOf(row));
      node.self_row = kNoId;
      ++cut_nodes_;
    }
  }

  // One per name: classes have no addresses.
  uint64_t LocationOf(std::string_view name) {
    const auto [known, is_new] = locations_.try_emplace(name, locations_.size() + 1);
    if (is_new) {
      const PprofMessage::Line line{.function = message_.InternFunction(name, name, ""),
                                    .line = 0};
      message_.AddLocation(known->second, kMapping, 0, {&line, 1});
    }
    return known->second;
  }

  PprofMessage::Header Header() const {
    PprofMessage::Header header = HeaderAt(trace_, graph_.ts, graph_.upid);
    header.default_sample_type = "space";
    header.comments.emplace_back(
        "Java heap: every reachable object on a shortest path of references from a root");
    if (graph_.truncated)
      header.comments.emplace_back("incomplete: packets of the snapshot are missing");
    if (cut_nodes_ > 0)
      header.comments.push_back("paths longer than " + std::to_string(kMaxDepth) +
                                " references are cut there");
    return header;
  }

  const ImportedTrace& trace_;
  const ImportedHeapGraph& graph_;
  PprofMessage message_;
  std::unordered_map<std::string_view, uint64_t> locations_;
  uint64_t cut_nodes_ = 0;
};

}  // namespace

Status ConvertHeapGraphsToPprof(const ImportedTrace& trace,
                                const PprofSelection& selection,
                                const DumpProfileSink& sink) {
  const CancelFlag never = false;
  for (uint32_t row = 0; row < trace.heap_graph.graphs.size(); ++row) {
    const ImportedHeapGraph& graph = trace.heap_graph.graphs[row];
    if (graph.object_count == 0 || !IsSelected(trace, selection, graph.upid, graph.ts))
      continue;
    HPD_TRY_ASSIGN(GraphTree graph_tree, BuildGraphTree(trace, {&row, 1}, {}, never));
    const int64_t pid = trace.processes[graph.upid].pid;
    FlameTree tree = std::move(graph_tree.tree);
    DumpProfile profile;
    profile.pid = pid;
    if (tree.nodes.empty())
      profile.note = "the Java heap of pid " + std::to_string(pid) + " at " +
                     std::to_string(graph.ts) +
                     " has no object that a root reaches: its profile is empty";
    profile.encode = [&](const PprofOutput& output) {
      GraphEncoder(trace, graph, output).Encode(std::move(tree));
    };
    HPD_TRY(sink(profile));
  }
  return {};
}

std::string ReasonForNoHeapGraph(const ImportedTrace& trace,
                                 const PprofSelection& selection) {
  if (trace.heap_graph.graphs.empty())
    return "the trace has no Java heap; was it recorded with the android.java_hprof "
           "data source?";
  DumpTimesByPid dumps;
  for (const ImportedHeapGraph& graph : trace.heap_graph.graphs)
    dumps.emplace_back(trace.processes[graph.upid].pid, graph.ts);
  const std::string reason = ReasonFromSelection(dumps, selection);
  return reason.empty() ? "its Java heaps have no objects" : reason;
}

}  // namespace heapprofd
