#include "object_graph/retention.h"

#include <utility>

namespace heapprofd {
namespace {

// The objects that each one dominates immediately, as lists. What the roots hold is a
// list, too.
struct Dominated {
  Dominated(const ObjectGraph& graph, const Retention& retention) {
    const uint32_t count = graph.object_count();
    first.ReserveForRandomAccess(count);
    first.resize(count, kNoObject);
    next.ReserveForRandomAccess(count);
    next.resize(count, kNoObject);
    for (uint32_t object = count; object-- > 0;) {
      const uint32_t above = retention.DominatorOf(object);
      if (above == kUnreachable)
        continue;
      uint32_t& head = above == kHeldByRoots ? first_of_roots : first[above];
      next[object] = std::exchange(head, object);
    }
  }

  Column<uint32_t> first;
  Column<uint32_t> next;
  uint32_t first_of_roots = kNoObject;
};

}  // namespace

Retention::Retention(const ObjectGraph& graph, DominatorTree tree)
    : retained_(RetainedSizes(graph, tree)), reachable_count_(tree.order.size()) {
  dominators_ = std::move(tree.dominator);
  for (uint32_t object = 0; object < graph.object_count(); ++object)
    reachable_bytes_ += dominators_[object] == kHeldByRoots ? retained_[object] : 0;
}

Retention::Retention(std::shared_ptr<const KeptObjects> kept)
    : kept_(std::move(kept)),
      reachable_count_(kept_->reachable_count),
      reachable_bytes_(kept_->reachable_bytes) {}

Result<Retention> FindRetention(const ObjectGraph& graph,
                                const std::atomic<bool>& cancelled) {
  if (graph.kept() != nullptr)
    return Retention(graph.kept());
  HPD_TRY_ASSIGN(DominatorTree tree, FindDominators(graph, cancelled));
  return Retention(graph, std::move(tree));
}

std::vector<uint64_t> RetainedByGroup(const ObjectGraph& graph,
                                      const Retention& retention,
                                      const std::vector<uint32_t>& group_of) {
  Dominated dominated(graph, retention);
  std::vector<uint64_t> sums(group_of.size(), 0);
  std::vector<uint32_t> above(group_of.size(), 0);  // of the group, on the way down
  for (uint32_t object = dominated.first_of_roots; object != kNoObject;) {
    const uint32_t group = group_of[graph.TypeOf(object)];
    if (above[group]++ == 0)
      sums[group] += retention.RetainedBy(object);
    if (dominated.first[object] != kNoObject) {
      object = dominated.first[object];
      continue;
    }
    while (object < graph.object_count()) {
      --above[group_of[graph.TypeOf(object)]];
      if (dominated.next[object] != kNoObject) {
        object = dominated.next[object];
        break;
      }
      object = retention.DominatorOf(object);
    }
    if (object >= graph.object_count())
      break;
  }
  return sums;
}

}  // namespace heapprofd
