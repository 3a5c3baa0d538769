#include "query/graph_tree.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/row_index.h"

namespace heapprofd {
namespace {

class GraphTreeBuilder {
 public:
  GraphTreeBuilder(const ImportedTrace& trace, GraphNaming naming)
      : trace_(trace), tables_(trace.heap_graph), naming_(naming) {}

  void Add(uint32_t graph, const ObjectTree& objects) {
    graph_ = graph;
    first_object_ = tables_.graphs[graph].first_object;
    node_of_.clear();
    node_of_.resize(tables_.graphs[graph].object_count, kNoId);
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
    made_.tree.names = names_;
    return std::move(made_);
  }

 private:
  struct Node {
    uint32_t parent = kNoId;
    StringId name = kEmptyString;
    HeapRootType root_type = HeapRootType::kNone;
    HeapType heap_type = HeapType::kUnknown;
    bool is_native = false;
    uint32_t graph = 0;
    uint32_t first_object = 0;
    FlameValues values;
    std::vector<uint32_t> children;
  };

  using Key = std::tuple<uint32_t, StringId, HeapRootType, HeapType, bool>;

  StringId ClassName(uint32_t object) {
    const uint32_t type = tables_.objects.type[object];
    class_names_.resize(tables_.classes.size(), kNoId);
    if (class_names_[type] == kNoId) {
      const HeapClass& row = tables_.classes[type];
      class_names_[type] = names_->Intern(
          trace_.Text(row.deobfuscated_name != kNoId ? row.deobfuscated_name : row.name));
    }
    return class_names_[type];
  }

  // Made once for all objects of a name, which may be long.
  StringId RootName(StringId name, HeapRootType type) {
    const auto [known, is_new] = root_names_.try_emplace({name, type}, kEmptyString);
    if (is_new)
      known->second =
          names_->Intern(std::string(names_->Get(name)) + " [" + NameOf(type) + "]");
    return known->second;
  }

  StringId NativeName(StringId name) {
    const auto [known, is_new] = native_names_.try_emplace(name, kEmptyString);
    if (is_new)
      known->second = names_->Intern("[native] " + std::string(names_->Get(name)));
    return known->second;
  }

  void AddObject(uint32_t object, uint32_t parent_object) {
    const HeapObjectTable& objects = tables_.objects;
    Node node;
    node.name = ClassName(object);
    uint32_t row = kNoId;
    if (parent_object == kNoId) {
      node.root_type = objects.root_type[object];
      if (naming_ == GraphNaming::kFlamegraph)
        node.name = RootName(node.name, node.root_type);
    } else {
      node.parent = node_of_[parent_object - first_object_];
      if (naming_ == GraphNaming::kClasses && nodes_[node.parent].name == node.name)
        row = node.parent;
    }
    if (naming_ == GraphNaming::kClasses)
      node.heap_type = objects.heap_type[object];
    if (row == kNoId)
      row = NodeOf(node, object);
    nodes_[row].values += FlameValues{1, objects.self_size[object], 0, 0};
    nodes_[row].first_object = std::min(nodes_[row].first_object, object);
    node_of_[object - first_object_] = row;
    if (objects.native_size[object] != 0)
      AddNative(object, row);
  }

  void AddNative(uint32_t object, uint32_t owner) {
    Node node;
    node.parent = owner;
    node.name = NativeName(nodes_[owner].name);
    node.root_type =
        naming_ == GraphNaming::kClasses ? nodes_[owner].root_type : HeapRootType::kNone;
    node.is_native = true;
    nodes_[NodeOf(node, object)].values +=
        FlameValues{1, tables_.objects.native_size[object], 0, 0};
  }

  uint32_t NodeOf(Node node, uint32_t object) {
    const auto row = static_cast<uint32_t>(nodes_.size());
    const auto [known, is_new] = index_.try_emplace(
        {node.parent, node.name, node.root_type, node.heap_type, node.is_native}, row);
    if (!is_new)
      return known->second;
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

  uint64_t NameHash(StringId name) {
    const auto [known, is_new] = name_hashes_.try_emplace(name, 0);
    if (is_new) {
      for (const char c : names_->Get(name))
        known->second = Mix(known->second ^ static_cast<uint8_t>(c)) + 1;
    }
    return known->second;
  }

  uint64_t PathHash(const Node& node, uint32_t parent_row) {
    const uint64_t above = parent_row == kNoId ? 0 : made_.path_hashes[parent_row];
    const auto kinds = static_cast<uint64_t>(node.root_type) << 8 |
                       static_cast<uint64_t>(node.heap_type) << 16 |
                       static_cast<uint64_t>(node.is_native) << 24;
    return Mix(Mix(above ^ NameHash(node.name)) ^ kinds);
  }

  const ImportedTrace& trace_;
  const HeapGraphTables& tables_;
  const GraphNaming naming_;
  std::shared_ptr<StringPool> names_ = std::make_shared<StringPool>();
  std::vector<StringId> class_names_;  // by class, in names_; kNoId: not asked for yet
  std::map<std::pair<StringId, HeapRootType>, StringId> root_names_;
  std::map<StringId, StringId> native_names_;
  std::map<StringId, uint64_t> name_hashes_;
  std::vector<Node> nodes_;  // parents first
  std::vector<uint32_t> top_;
  GraphTree made_;
  std::vector<uint32_t> rows_;  // in made_, by node
  // Of the graph that is added:
  uint32_t graph_ = 0;
  uint32_t first_object_ = 0;
  std::map<Key, uint32_t> index_;
  Column<uint32_t> node_of_;  // by object; kNoId: not reached
};

}  // namespace

Result<GraphTree> BuildGraphTree(const ImportedTrace& trace,
                                 std::span<const uint32_t> graphs,
                                 GraphHierarchy hierarchy,
                                 GraphNaming naming,
                                 const CancelFlag& cancelled) {
  GraphTreeBuilder builder(trace, naming);
  for (const uint32_t graph : graphs) {
    HPD_TRY_ASSIGN(const ObjectTree objects,
                   hierarchy == GraphHierarchy::kShortestPaths
                       ? ShortestPathTree(trace, graph, cancelled)
                       : DominatorObjectTree(trace, graph, cancelled));
    builder.Add(graph, objects);
  }
  return builder.Finish();
}

}  // namespace heapprofd
