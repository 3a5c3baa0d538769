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
  GraphTreeBuilder(const ImportedTrace& trace, GraphNaming naming)
      : trace_(trace), tables_(trace.heap_graph), naming_(naming) {}

  Status Add(uint32_t graph, const CancelFlag& cancelled) {
    graph_ = graph;
    first_object_ = tables_.graphs[graph].first_object;
    rows_.assign(tables_.graphs[graph].object_count, kNoId);
    queue_.clear();
    index_.clear();
    AddRoots();
    for (size_t next = 0; next < queue_.size(); ++next) {
      if (next % kObjectsPerCancelCheck == 0 && cancelled)
        return Status(StatusCode::kUnavailable,
                      "cannot finish the query: it was cancelled");
      FollowReferences(queue_[next]);
    }
    return {};
  }

  GraphTree Finish() {
    AddCumulative(&made_.tree);
    made_.tree.names = names_;
    return std::move(made_);
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
    for (uint32_t i = 0; i < rows_.size(); ++i) {
      if (tables_.objects.root_type[first_object_ + i] != HeapRootType::kNone)
        roots.push_back(first_object_ + i);
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
    const bool is_flamegraph = naming_ == GraphNaming::kFlamegraph;
    if (root_type != HeapRootType::kNone && is_flamegraph)
      name += std::string(" [") + NameOf(root_type) + "]";
    const uint32_t row =
        NodeOf({parent_row, objects.type[object], root_type, Part::kJava}, name);
    made_.tree.AddSelf(row, FlameValues{1, objects.self_size[object], 0, 0});
    if (objects.native_size[object] != 0 && is_flamegraph) {
      const uint32_t native =
          NodeOf({row, objects.type[object], HeapRootType::kNone, Part::kNative},
                 "[native] " + name);
      made_.tree.AddSelf(native, FlameValues{1, objects.native_size[object], 0, 0});
    }
    rows_[object - first_object_] = row;
    queue_.push_back(object);
  }

  uint32_t NodeOf(const Key& key, const std::string& name) {
    const auto row = static_cast<uint32_t>(made_.tree.nodes.size());
    const auto [known, is_new] = index_.try_emplace(key, row);
    if (!is_new)
      return known->second;
    FlameNode node;
    node.parent = std::get<0>(key);
    node.function = made_.tree.functions.Intern({.name = names_->Intern(name)});
    made_.tree.AddNode(node);
    made_.graphs.push_back(graph_);
    made_.root_types.push_back(std::get<HeapRootType>(key));
    return row;
  }

  void FollowReferences(uint32_t owner) {
    const uint32_t first = tables_.objects.first_reference[owner];
    if (first == kNoId)
      return;
    for (uint32_t i = 0; i < tables_.objects.reference_count[owner]; ++i) {
      const uint32_t owned = tables_.references.owned[first + i];
      if (owned == kNoId || owned < first_object_ ||
          owned - first_object_ >= rows_.size() ||
          rows_[owned - first_object_] != kNoId ||
          IsWeakReference(trace_, owner, first + i))
        continue;
      AddObject(owned, rows_[owner - first_object_]);
    }
  }

  const ImportedTrace& trace_;
  const HeapGraphTables& tables_;
  const GraphNaming naming_;
  GraphTree made_;
  std::shared_ptr<StringPool> names_ = std::make_shared<StringPool>();
  // Of the graph that is added:
  uint32_t graph_ = 0;
  uint32_t first_object_ = 0;
  std::map<Key, uint32_t> index_;
  std::vector<uint32_t> rows_;   // of the graph's objects; kNoId: not reached
  std::vector<uint32_t> queue_;  // reached objects, nearest first
};

}  // namespace

bool IsWeakReference(const ImportedTrace& trace, uint32_t owner, uint32_t reference) {
  const HeapGraphTables& tables = trace.heap_graph;
  const HeapClassKind kind = tables.classes[tables.objects.type[owner]].kind;
  return (kind == HeapClassKind::kWeakReference ||
          kind == HeapClassKind::kFinalizerReference ||
          kind == HeapClassKind::kPhantomReference) &&
         trace.Text(tables.references.field_name[reference]).ends_with("referent");
}

Result<GraphTree> BuildGraphTree(const ImportedTrace& trace,
                                 std::span<const uint32_t> graphs,
                                 GraphNaming naming,
                                 const CancelFlag& cancelled) {
  GraphTreeBuilder builder(trace, naming);
  for (const uint32_t graph : graphs)
    HPD_TRY(builder.Add(graph, cancelled));
  return builder.Finish();
}

}  // namespace heapprofd
