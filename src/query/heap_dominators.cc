#include "query/heap_dominators.h"

#include <unordered_map>
#include <utility>

#include "query/objects/object_tree.h"
#include "query/sum.h"

namespace heapprofd {
namespace {

class GraphDominators {
 public:
  GraphDominators(const ImportedTrace& trace,
                  const ImportedHeapGraph& graph,
                  const ObjectTree& tree)
      : objects_(trace.heap_graph.objects), first_(graph.first_object), tree_(tree) {
    nodes_.resize(graph.object_count, Node{});
  }

  void AddTo(HeapDominators* rows) {
    SetDepths();
    AddSums();
    FindFirstOfTypes();
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      const Node& node = nodes_[i];
      if (node.depth == 0)
        continue;
      rows->object.push_back(first_ + i);
      rows->dominator.push_back(tree_.parent[i]);
      rows->count.push_back(node.count);
      rows->size.push_back(node.size);
      rows->native_size.push_back(node.native_size);
      rows->depth.push_back(node.depth);
      rows->is_first_of_type.push_back(node.is_first_of_type);
    }
  }

 private:
  struct Node {
    int64_t count = 0;
    int64_t size = 0;
    int64_t native_size = 0;
    uint32_t depth = 0;  // 0: it cannot be reached
    uint32_t first_child = kNoId;
    uint32_t next_sibling = kNoId;
    bool is_first_of_type = true;
  };

  Node& NodeOf(uint32_t object) { return nodes_[object - first_]; }

  void SetDepths() {
    for (const uint32_t object : tree_.order) {
      const uint32_t parent = tree_.parent[object - first_];
      NodeOf(object).depth = parent == kNoId ? 1 : NodeOf(parent).depth + 1;
      uint32_t& head = parent == kNoId ? first_root_ : NodeOf(parent).first_child;
      NodeOf(object).next_sibling = std::exchange(head, object);
    }
  }

  void AddSums() {
    for (size_t i = tree_.order.size(); i-- > 0;) {
      const uint32_t object = tree_.order[i];
      Node& node = NodeOf(object);
      node.count = Sum(node.count, 1);
      node.size = Sum(node.size, objects_.self_size[object]);
      node.native_size = Sum(node.native_size, objects_.native_size[object]);
      const uint32_t parent = tree_.parent[object - first_];
      if (parent == kNoId)
        continue;
      Node& holder = NodeOf(parent);
      holder.count = Sum(holder.count, node.count);
      holder.size = Sum(holder.size, node.size);
      holder.native_size = Sum(holder.native_size, node.native_size);
    }
  }

  // Down and up the tree, with the classes on the way counted.
  void FindFirstOfTypes() {
    std::unordered_map<uint32_t, uint32_t> above;
    for (uint32_t object = first_root_; object != kNoId;) {
      NodeOf(object).is_first_of_type = above[objects_.type[object]]++ == 0;
      if (NodeOf(object).first_child != kNoId) {
        object = NodeOf(object).first_child;
        continue;
      }
      while (object != kNoId) {
        --above[objects_.type[object]];
        if (NodeOf(object).next_sibling != kNoId) {
          object = NodeOf(object).next_sibling;
          break;
        }
        object = tree_.parent[object - first_];
      }
    }
  }

  const HeapObjectTable& objects_;
  const uint32_t first_;
  const ObjectTree& tree_;
  Column<Node> nodes_;  // by object
  uint32_t first_root_ = kNoId;
};

}  // namespace

Result<HeapDominators> FindHeapDominators(const ImportedTrace& trace,
                                          const CancelFlag& cancelled) {
  HeapDominators rows;
  for (uint32_t row = 0; row < trace.heap_graph.graphs.size(); ++row) {
    HPD_TRY_ASSIGN(const ObjectTree tree, DominatorObjectTree(trace, row, cancelled));
    GraphDominators(trace, trace.heap_graph.graphs[row], tree).AddTo(&rows);
  }
  return rows;
}

}  // namespace heapprofd
