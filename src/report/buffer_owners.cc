#include "report/buffer_owners.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "query/objects/graph_of_rows.h"
#include "query/objects/object_tree.h"
#include "report/holder_walk.h"
#include "tables/block_index.h"
#include "tables/last_dumps.h"

namespace heapprofd {
namespace {

// The name of an object's class; of an object that stands for a class, that one's.
std::string_view OwnerName(const ImportedTrace& trace, uint32_t object) {
  const std::string_view described = ClassStoodFor(trace, object);
  const HeapGraphTables& heap = trace.heap_graph;
  return described.empty()
             ? trace.Text(heap.classes[heap.objects.type[object]].ShownName())
             : described;
}

// In one graph, by its objects' dominators.
class OwnersInGraph {
 public:
  OwnersInGraph(const ImportedTrace& trace, uint32_t graph, ObjectTree tree)
      : trace_(trace),
        tree_(std::move(tree)),
        walk_([this, first = trace.heap_graph.graphs[graph].first_object](
                  uint32_t object) { return tree_.parent[object - first]; },
              [this](uint32_t object) { return OwnerName(trace_, object); }) {}

  OwnersInGraph(const OwnersInGraph&) = delete;
  OwnersInGraph& operator=(const OwnersInGraph&) = delete;

  std::string_view Of(uint32_t object) {
    return trace_.heap_graph.objects.root_distance[object] < 0 ? kHeldByNobody
                                                               : walk_.OwnerOf(object);
  }

 private:
  const ImportedTrace& trace_;
  ObjectTree tree_;
  HolderWalk<std::string_view> walk_;
};

// Sizes are what a file says.
uint64_t AddBounded(uint64_t sum, uint64_t more) {
  return more > std::numeric_limits<uint64_t>::max() - sum
             ? std::numeric_limits<uint64_t>::max()
             : sum + more;
}

}  // namespace

bool IsLibraryClass(std::string_view name) {
  constexpr auto kPrefixes =
      std::to_array<std::string_view>({"java.", "javax.", "jdk.", "sun."});
  return name.ends_with("[]") || std::ranges::any_of(kPrefixes, [name](auto prefix) {
           return name.starts_with(prefix);
         });
}

Result<std::vector<BufferGroup>> GroupBuffers(const ImportedTrace& trace,
                                              const CancelFlag& cancelled) {
  const HeapGraphTables& heap = trace.heap_graph;
  const std::map<uint32_t, uint32_t> last_graphs = LastGraphs(trace);
  const BlockIndex blocks(trace);
  std::map<uint32_t, OwnersInGraph> owners;  // by graph
  std::map<std::tuple<uint32_t, std::string, uint32_t>, BufferGroup> groups;
  for (const HeapDirectBuffer& buffer : heap.direct_buffers) {
    const uint32_t graph = heap.objects.graph[buffer.object];
    const uint32_t upid = heap.graphs[graph].upid;
    if (last_graphs.at(upid) != graph)
      continue;
    auto known = owners.find(graph);
    if (known == owners.end()) {
      HPD_TRY_ASSIGN(ObjectTree tree, DominatorObjectTree(trace, graph, cancelled));
      known = owners.try_emplace(graph, trace, graph, std::move(tree)).first;
    }
    const uint32_t block = blocks.Find(upid, buffer.address);
    const uint32_t callsite = block == kNoId ? kNoId : trace.live_blocks.callsite[block];
    const std::string owner(known->second.Of(buffer.object));
    BufferGroup& group = groups[{upid, owner, callsite}];
    group.upid = upid;
    group.owner = owner;
    group.callsite = callsite;
    ++group.buffers;
    group.bytes = AddBounded(group.bytes, buffer.bytes);
  }
  std::vector<BufferGroup> sorted;
  sorted.reserve(groups.size());
  for (auto& [key, group] : groups)
    sorted.push_back(std::move(group));
  std::ranges::stable_sort(sorted, std::ranges::greater(), &BufferGroup::bytes);
  return sorted;
}

}  // namespace heapprofd
