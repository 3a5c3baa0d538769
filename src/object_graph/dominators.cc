#include "object_graph/dominators.h"

#include <algorithm>
#include <utility>

#include "object_graph/link_eval_forest.h"

namespace heapprofd {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

// How often objects are referred to, and which take no part: two bits for each.
class ReferenceCounts {
 public:
  static constexpr uint8_t kMany = 2;
  static constexpr uint8_t kLeaf = 3;  // no references, held once, by no root

  explicit ReferenceCounts(const ObjectGraph& graph) {
    bits_.ReserveForRandomAccess(graph.object_count() / 4 + 1);
    bits_.resize(graph.object_count() / 4 + 1, 0);
    for (uint32_t owner = 0; owner < graph.object_count(); ++owner)
      graph.ForEachReference(owner, [this](uint32_t target) { Add(target); });
    for (const GraphRoot& root : graph.roots())
      Set(root.object, kMany);
    for (const ObjectType& type : graph.types()) {
      if (type.object != kNoObject)
        Set(type.object, kMany);
    }
  }

  void MakeLeaf(uint32_t object) { Set(object, kLeaf); }

  uint8_t Of(uint32_t object) const {
    return static_cast<uint8_t>(bits_[object / 4] >> (object % 4 * 2) & 3);
  }

 private:
  void Add(uint32_t object) {
    const uint8_t count = Of(object);
    if (count < kMany)
      Set(object, static_cast<uint8_t>(count + 1));
  }

  void Set(uint32_t object, uint8_t value) {
    uint8_t& bits = bits_[object / 4];
    const uint32_t shift = object % 4 * 2;
    bits = static_cast<uint8_t>((bits & ~(3u << shift)) | static_cast<uint32_t>(value)
                                                              << shift);
  }

  Column<uint8_t> bits_;
};

// Nodes are objects by their number in the order of a depth-first search; 0 is what holds
// the roots.
class DominatorFinder {
 public:
  DominatorFinder(const ObjectGraph& graph, const std::atomic<bool>& cancelled)
      : graph_(graph), cancelled_(cancelled), counts_(graph) {}

  Result<DominatorTree> Find() {
    MarkLeaves();
    HPD_TRY(Number());
    HPD_TRY(SortPredecessors());
    HPD_TRY(FindSemidominators());
    FindImmediateDominators();
    return MakeTree();
  }

 private:
  struct Visit {
    uint32_t node;
    bool at_type_object;  // it comes behind the others
    uint64_t reference;
  };

  bool HoldsTypeObject(uint32_t object) const {
    const uint32_t held = graph_.TypeObjectOf(object);
    return held != kNoObject && !is_root_type_[graph_.TypeOf(object)];
  }

  // The objects of most types are roots themselves: who else holds them does not matter.
  void MarkLeaves() {
    number_.ReserveForRandomAccess(graph_.object_count());
    number_.resize(graph_.object_count(), kNone);
    for (const GraphRoot& root : graph_.roots())
      number_[root.object] = kRoot;
    for (const ObjectType& type : graph_.types())
      is_root_type_.push_back(type.object != kNoObject && number_[type.object] == kRoot);
    for (uint32_t object = 0; object < graph_.object_count(); ++object) {
      if (counts_.Of(object) == 1 && graph_.FirstReference(object) == 0 &&
          !HoldsTypeObject(object))
        counts_.MakeLeaf(object);
    }
  }

  Status Number() {
    for (Column<uint32_t>* const column : {&object_of_, &parent_, &semi_})
      column->ReserveForRandomAccess(size_t{graph_.object_count()} + 1);
    AddNode(kNoObject, 0);
    for (const GraphRoot& root : graph_.roots()) {
      if (number_[root.object] != kRoot)
        continue;  // it is reached already
      Enter(root.object, 0);
      while (!visits_.empty()) {
        if (++steps_ % kStepsPerCancelCheck == 0 && cancelled_)
          return Cancelled();
        Step();
      }
    }
    return {};
  }

  void Step() {
    Visit& visit = visits_.back();
    const uint32_t node = visit.node;
    const uint32_t owner = object_of_[node];
    uint32_t target = kNoObject;
    if (visit.reference != 0) {
      target = graph_.Target(visit.reference);
      visit.reference = graph_.NextReference(visit.reference);
    } else if (!std::exchange(visit.at_type_object, true) && HoldsTypeObject(owner)) {
      target = graph_.TypeObjectOf(owner);
    } else {
      visits_.pop_back();
      return;
    }
    if (counts_.Of(target) == ReferenceCounts::kLeaf)
      return;
    if (number_[target] >= kRoot)
      Enter(target, node);
    else if (semi_[number_[target]] != 0)
      edges_.push_back(Edge{number_[target], node});
  }

  void Enter(uint32_t object, uint32_t parent) {
    const bool is_root = number_[object] == kRoot;
    const uint32_t node = AddNode(object, parent);
    number_[object] = node;
    semi_[node] = is_root ? 0 : kNone;
    const uint64_t first = graph_.FirstReference(object);
    if (first != 0 || HoldsTypeObject(object))
      visits_.push_back({node, false, first});
  }

  uint32_t AddNode(uint32_t object, uint32_t parent) {
    object_of_.push_back(object);
    parent_.push_back(parent);
    semi_.push_back(kNone);
    return static_cast<uint32_t>(object_of_.size() - 1);
  }

  // From edges to lists by target, without those of the tree of the search.
  Status SortPredecessors() {
    const size_t count = object_of_.size();
    first_edge_.ReserveForRandomAccess(count + 1);
    first_edge_.resize(count + 1, 0);
    for (const Edge& edge : edges_)
      ++first_edge_[edge.to];
    uint64_t sum = 0;
    if (edges_.size() >= UINT32_MAX)
      return Status(StatusCode::kUnavailable,
                    "cannot find dominators: more than 4 billion references lead to "
                    "objects that others hold too");
    for (size_t node = 0; node <= count; ++node) {
      sum += first_edge_[node];
      first_edge_[node] = static_cast<uint32_t>(sum);  // its end, for now
    }
    predecessors_.ReserveForRandomAccess(edges_.size());
    predecessors_.resize(edges_.size(), 0);
    for (const Edge& edge : edges_)
      predecessors_[--first_edge_[edge.to]] = edge.from;
    edges_ = Column<Edge>();
    return {};
  }

  Status FindSemidominators() {
    const auto count = static_cast<uint32_t>(object_of_.size());
    LinkEvalForest forest(semi_.span());
    for (uint32_t node = count; node-- > 1;) {
      if (node % kStepsPerCancelCheck == 0 && cancelled_)
        return Cancelled();
      uint32_t semi = semi_[node] == 0 ? 0 : parent_[node];
      for (uint32_t at = first_edge_[node]; semi != 0 && at < first_edge_[node + 1];
           ++at) {
        const uint32_t from = predecessors_[at];
        semi = std::min(semi, from < node ? from : semi_[forest.Evaluate(from)]);
      }
      semi_[node] = semi;
      forest.Link(node, parent_[node]);
    }
    predecessors_ = Column<uint32_t>();
    first_edge_ = Column<uint32_t>();
    return {};
  }

  // In place of the parents.
  void FindImmediateDominators() {
    for (uint32_t node = 1; node < parent_.size(); ++node) {
      uint32_t dominator = parent_[node];
      while (dominator > semi_[node])
        dominator = parent_[dominator];
      parent_[node] = dominator;
    }
    semi_ = Column<uint32_t>();
  }

  DominatorTree MakeTree() {
    DominatorTree tree;
    tree.dominator = std::move(number_);
    for (uint32_t& dominator : tree.dominator)
      dominator = dominator >= kRoot ? kUnreachable : object_of_[parent_[dominator]];
    parent_ = Column<uint32_t>();
    tree.order.ReserveForRandomAccess(graph_.object_count());
    tree.order.append(object_of_.span().subspan(1));
    for (uint32_t owner = 0; owner < graph_.object_count(); ++owner) {
      if (tree.dominator[owner] != kUnreachable)
        AddLeaves(owner, &tree);
    }
    return tree;
  }

  void AddLeaves(uint32_t owner, DominatorTree* tree) {
    graph_.ForEachReference(owner, [&](uint32_t target) {
      if (counts_.Of(target) != ReferenceCounts::kLeaf)
        return;
      tree->dominator[target] = owner;
      tree->order.push_back(target);
    });
  }

  static Status Cancelled() {
    return Status(StatusCode::kUnavailable,
                  "cannot find what retains memory: it was cancelled");
  }

  struct Edge {
    uint32_t to;
    uint32_t from;
  };

  static constexpr uint32_t kStepsPerCancelCheck = 1 << 14;
  static constexpr uint32_t kRoot = kNone - 1;  // as a number: not reached yet, a root

  const ObjectGraph& graph_;
  const std::atomic<bool>& cancelled_;
  ReferenceCounts counts_;
  std::vector<bool> is_root_type_;
  Column<Visit> visits_;
  uint64_t steps_ = 0;
  Column<uint32_t> number_;     // by object
  Column<uint32_t> object_of_;  // this and what follows: by number
  Column<uint32_t> parent_;
  Column<uint32_t> semi_;
  Column<Edge> edges_;
  Column<uint32_t> first_edge_;
  Column<uint32_t> predecessors_;
};

}  // namespace

Result<DominatorTree> FindDominators(const ObjectGraph& graph,
                                     const std::atomic<bool>& cancelled) {
  return DominatorFinder(graph, cancelled).Find();
}

Column<uint64_t> RetainedSizes(const ObjectGraph& graph, const DominatorTree& tree) {
  Column<uint64_t> retained;
  retained.ReserveForRandomAccess(graph.object_count());
  retained.resize(graph.object_count(), 0);
  for (size_t i = tree.order.size(); i-- > 0;) {
    const uint32_t object = tree.order[i];
    retained[object] += graph.SizeOf(object);
    if (tree.dominator[object] != kHeldByRoots)
      retained[tree.dominator[object]] += retained[object];
  }
  return retained;
}

}  // namespace heapprofd
