#include "query/graph_tree.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "base/row_index.h"
#include "query/graph_node_names.h"

namespace heapprofd {
namespace {

class GraphTreeBuilder {
 public:
  GraphTreeBuilder(const ImportedTrace& trace, const GraphTreeOptions& options)
      : tables_(trace.heap_graph), options_(options), names_(trace) {}

  void Add(uint32_t graph, const ObjectTree& objects) {
    graph_ = graph;
    first_object_ = tables_.graphs[graph].first_object;
    node_of_.clear();
    node_of_.resize(tables_.graphs[graph].object_count, kNoId);
    is_folded_.assign(tables_.graphs[graph].object_count, false);
    index_.clear();
    for (const uint32_t object : objects.order)
      AddObject(object, objects.parent[object - first_object_]);
  }

  GraphTree Finish() {
    SortChildren();
    rows_.assign(nodes_.size(), kNoId);
    std::vector<uint32_t> stack(top_.rbegin(), top_.rend());
    while (!stack.empty()) {
      const uint32_t node = stack.back();
      stack.pop_back();
      AddRow(node);
      stack.insert(stack.end(), nodes_[node].children.rbegin(),
                   nodes_[node].children.rend());
    }
    AddCumulative(&made_.tree);
    made_.tree.names = names_.pool();
    return std::move(made_);
  }

 private:
  struct Node {
    uint32_t parent = kNoId;
    StringId name = kEmptyString;
    HeapRootType root_type = HeapRootType::kNone;
    HeapType heap_type = HeapType::kUnknown;
    bool is_native = false;
    uint32_t depth = 0;  // below a root
    uint32_t graph = 0;
    uint32_t first_object = 0;
    FlameValues values;
    std::vector<uint32_t> children;
  };

  using Key = std::tuple<uint32_t, StringId, HeapRootType, HeapType, bool>;

  void AddObject(uint32_t object, uint32_t parent_object) {
    const HeapObjectTable& objects = tables_.objects;
    const uint32_t at = object - first_object_;
    const uint32_t above =
        parent_object == kNoId ? kNoId : node_of_[parent_object - first_object_];
    uint32_t row = kNoId;
    if (parent_object == kNoId || !is_folded_[parent_object - first_object_])
      row = NodeOfObject(object, above);
    if (row == kNoId) {
      is_folded_[at] = true;
      row = above;
    }
    nodes_[row].values += FlameValues{1, objects.self_size[object], 0, 0};
    nodes_[row].first_object = std::min(nodes_[row].first_object, object);
    node_of_[at] = row;
    if (objects.native_size[object] != 0)
      AddNative(object, row);
  }

  // `above`: the node of what it hangs on. kNoId: there is no room for its own.
  uint32_t NodeOfObject(uint32_t object, uint32_t above) {
    Node node;
    node.parent = above;
    node.name = names_.OfClass(tables_.objects.type[object]);
    if (above == kNoId) {
      node.root_type = tables_.objects.root_type[object];
      if (options_.naming == GraphNaming::kFlamegraph)
        node.name = names_.OfRoot(node.name, node.root_type);
    } else if (options_.naming == GraphNaming::kClasses &&
               nodes_[above].name == node.name) {
      return above;
    }
    if (options_.naming == GraphNaming::kClasses)
      node.heap_type = tables_.objects.heap_type[object];
    return NodeOf(std::move(node), object);
  }

  void AddNative(uint32_t object, uint32_t owner) {
    Node node;
    node.parent = owner;
    node.name = names_.OfNative(nodes_[owner].name);
    node.root_type = options_.naming == GraphNaming::kClasses ? nodes_[owner].root_type
                                                              : HeapRootType::kNone;
    node.is_native = true;
    uint32_t row = kNoId;
    if (!is_folded_[object - first_object_])
      row = NodeOf(std::move(node), object);
    nodes_[row == kNoId ? owner : row].values +=
        FlameValues{1, tables_.objects.native_size[object], 0, 0};
  }

  // kNoId: there is no room for another one. Roots have room always.
  uint32_t NodeOf(Node node, uint32_t object) {
    const auto row = static_cast<uint32_t>(nodes_.size());
    const Key key = {node.parent, node.name, node.root_type, node.heap_type,
                     node.is_native};
    const auto known = index_.find(key);
    if (known != index_.end())
      return known->second;
    if (node.parent != kNoId) {
      node.depth = nodes_[node.parent].depth + 1;
      if (row >= options_.max_nodes || node.depth >= options_.max_depth) {
        made_.is_folded = true;
        return kNoId;
      }
    }
    index_.emplace(key, row);
    (node.parent == kNoId ? top_ : nodes_[node.parent].children).push_back(row);
    node.graph = graph_;
    node.first_object = object;
    nodes_.push_back(std::move(node));
    return row;
  }

  void SortChildren() {
    const auto place = [this](uint32_t node) {
      return std::pair(nodes_[node].first_object, nodes_[node].is_native);
    };
    std::ranges::sort(top_, {}, place);
    for (Node& node : nodes_)
      std::ranges::sort(node.children, {}, place);
  }

  void AddRow(uint32_t index) {
    const Node& node = nodes_[index];
    FlameNode row;
    row.parent = node.parent == kNoId ? kNoId : rows_[node.parent];
    row.function = made_.tree.functions.Intern({.name = node.name});
    rows_[index] = made_.tree.AddNode(row);
    made_.tree.AddSelf(rows_[index], node.values);
    made_.graphs.push_back(node.graph);
    made_.root_types.push_back(node.root_type);
    made_.heap_types.push_back(node.heap_type);
    made_.is_native.push_back(node.is_native);
    made_.path_hashes.push_back(PathHash(node, row.parent));
  }

  uint64_t PathHash(const Node& node, uint32_t parent_row) {
    const uint64_t above = parent_row == kNoId ? 0 : made_.path_hashes[parent_row];
    const auto kinds = static_cast<uint64_t>(node.root_type) << 8 |
                       static_cast<uint64_t>(node.heap_type) << 16 |
                       static_cast<uint64_t>(node.is_native) << 24;
    return Mix(Mix(above ^ names_.HashOf(node.name)) ^ kinds);
  }

  const HeapGraphTables& tables_;
  const GraphTreeOptions options_;
  GraphNodeNames names_;
  std::vector<Node> nodes_;  // parents first
  std::vector<uint32_t> top_;
  GraphTree made_;
  std::vector<uint32_t> rows_;  // in made_, by node
  // Of the graph that is added:
  uint32_t graph_ = 0;
  uint32_t first_object_ = 0;
  std::map<Key, uint32_t> index_;
  Column<uint32_t> node_of_;  // by object; kNoId: not reached
  // By object: it had no room and is in the node of one above. What hangs on it is there,
  // too: children of that node belong to others.
  std::vector<bool> is_folded_;
};

}  // namespace

Result<GraphTree> BuildGraphTree(const ImportedTrace& trace,
                                 std::span<const uint32_t> graphs,
                                 const GraphTreeOptions& options,
                                 const CancelFlag& cancelled) {
  GraphTreeBuilder builder(trace, options);
  for (const uint32_t graph : graphs) {
    HPD_TRY_ASSIGN(const ObjectTree objects,
                   options.hierarchy == GraphHierarchy::kShortestPaths
                       ? ShortestPathTree(trace, graph, cancelled)
                       : DominatorObjectTree(trace, graph, cancelled));
    builder.Add(graph, objects);
  }
  return builder.Finish();
}

}  // namespace heapprofd
