#include "query/graph_tree.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

namespace heapprofd {
namespace {

constexpr uint32_t kObjectsPerCancelCheck = 1 << 14;

class GraphTreeBuilder {
 public:
  GraphTreeBuilder(const ImportedTrace& trace, const ImportedHeapGraph& graph)
      : trace_(trace),
        tables_(trace.heap_graph),
        graph_(graph),
        rows_(graph.object_count, kNoId) {}

  Result<FlameTree> Build(const CancelFlag& cancelled) {
    AddRoots();
    for (size_t next = 0; next < queue_.size(); ++next) {
      if (next % kObjectsPerCancelCheck == 0 && cancelled)
        return Status(StatusCode::kUnavailable,
                      "cannot finish the query: it was cancelled");
      FollowReferences(queue_[next]);
    }
    AddCumulative(&tree_);
    return std::move(tree_);
  }

 private:
  enum class Part : uint8_t { kJava, kNative };

  // The node's parent, class, root type and part.
  using Key = std::tuple<uint32_t, uint32_t, HeapRootType, Part>;

  std::string_view ClassName(uint32_t object) const {
    const HeapClass& type = tables_.classes[tables_.objects.type[object]];
    return trace_.Text(type.deobfuscated_name != kNoId ? type.deobfuscated_name
                                                       : type.name);
  }

  void AddRoots() {
    std::vector<uint32_t> roots;
    for (uint32_t i = 0; i < graph_.object_count; ++i) {
      if (tables_.objects.root_type[graph_.first_object + i] != HeapRootType::kNone)
        roots.push_back(graph_.first_object + i);
    }
    std::stable_sort(roots.begin(), roots.end(), [this](uint32_t a, uint32_t b) {
      return ClassName(a) < ClassName(b);
    });
    for (const uint32_t object : roots)
      AddObject(object, kNoId);
  }

  void AddObject(uint32_t object, uint32_t parent_row) {
    const HeapObjectTable& objects = tables_.objects;
    const HeapRootType root_type =
        parent_row == kNoId ? objects.root_type[object] : HeapRootType::kNone;
    std::string name(ClassName(object));
    if (root_type != HeapRootType::kNone)
      name += std::string(" [") + NameOf(root_type) + "]";
    const uint32_t row =
        NodeOf({parent_row, objects.type[object], root_type, Part::kJava}, name);
    tree_.nodes[row].self += FlameValues{1, objects.self_size[object], 0, 0, 0};
    if (objects.native_size[object] != 0) {
      const uint32_t native =
          NodeOf({row, objects.type[object], HeapRootType::kNone, Part::kNative},
                 "[native] " + name);
      tree_.nodes[native].self += FlameValues{1, objects.native_size[object], 0, 0, 0};
    }
    rows_[object - graph_.first_object] = row;
    queue_.push_back(object);
  }

  uint32_t NodeOf(const Key& key, const std::string& name) {
    const auto row = static_cast<uint32_t>(tree_.nodes.size());
    const auto [known, is_new] = index_.try_emplace(key, row);
    if (!is_new)
      return known->second;
    FlameNode node;
    node.id = row;
    node.parent = std::get<0>(key);
    node.depth = node.parent == kNoId ? 0 : tree_.nodes[node.parent].depth + 1;
    node.name = tree_.names.Get(tree_.names.Intern(name));
    tree_.nodes.push_back(node);
    return row;
  }

  bool IsWeak(uint32_t owner, uint32_t reference) const {
    const HeapClassKind kind = tables_.classes[tables_.objects.type[owner]].kind;
    return (kind == HeapClassKind::kWeakReference ||
            kind == HeapClassKind::kFinalizerReference ||
            kind == HeapClassKind::kPhantomReference) &&
           trace_.Text(tables_.references.field_name[reference]).ends_with("referent");
  }

  void FollowReferences(uint32_t owner) {
    const uint32_t first = tables_.objects.first_reference[owner];
    if (first == kNoId)
      return;
    for (uint32_t i = 0; i < tables_.objects.reference_count[owner]; ++i) {
      const uint32_t owned = tables_.references.owned[first + i];
      if (owned == kNoId || owned < graph_.first_object ||
          owned - graph_.first_object >= graph_.object_count ||
          rows_[owned - graph_.first_object] != kNoId || IsWeak(owner, first + i))
        continue;
      AddObject(owned, rows_[owner - graph_.first_object]);
    }
  }

  const ImportedTrace& trace_;
  const HeapGraphTables& tables_;
  const ImportedHeapGraph& graph_;
  FlameTree tree_;
  std::map<Key, uint32_t> index_;
  std::vector<uint32_t> rows_;   // of the graph's objects; kNoId: not reached
  std::vector<uint32_t> queue_;  // reached objects, nearest first
};

}  // namespace

Result<FlameTree> BuildGraphTree(const ImportedTrace& trace,
                                 uint32_t graph,
                                 const CancelFlag& cancelled) {
  return GraphTreeBuilder(trace, trace.heap_graph.graphs[graph]).Build(cancelled);
}

}  // namespace heapprofd
