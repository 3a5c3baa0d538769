#include <utility>

#include "object_graph/dominators.h"

namespace heapprofd {
namespace {

// The objects that each one dominates immediately, as lists. What the roots hold is a
// list, too.
struct Dominated {
  explicit Dominated(const DominatorTree& tree) {
    const size_t count = tree.dominator.size();
    first.ReserveForRandomAccess(count);
    first.resize(count, kNoObject);
    next.ReserveForRandomAccess(count);
    next.resize(count, kNoObject);
    for (size_t i = tree.order.size(); i-- > 0;) {
      const uint32_t object = tree.order[i];
      const uint32_t above = tree.dominator[object];
      uint32_t& head = above == kHeldByRoots ? first_of_roots : first[above];
      next[object] = std::exchange(head, object);
    }
  }

  Column<uint32_t> first;
  Column<uint32_t> next;
  uint32_t first_of_roots = kNoObject;
};

}  // namespace

std::vector<uint64_t> RetainedByGroup(const ObjectGraph& graph,
                                      const DominatorTree& tree,
                                      const Column<uint64_t>& retained,
                                      const std::vector<uint32_t>& group_of) {
  Dominated dominated(tree);
  std::vector<uint64_t> sums(group_of.size(), 0);
  std::vector<uint32_t> above(group_of.size(), 0);  // of the group, on the way down
  for (uint32_t object = dominated.first_of_roots; object != kNoObject;) {
    const uint32_t group = group_of[graph.TypeOf(object)];
    if (above[group]++ == 0)
      sums[group] += retained[object];
    if (dominated.first[object] != kNoObject) {
      object = dominated.first[object];
      continue;
    }
    while (object != kHeldByRoots) {
      --above[group_of[graph.TypeOf(object)]];
      if (dominated.next[object] != kNoObject) {
        object = dominated.next[object];
        break;
      }
      object = tree.dominator[object];
    }
  }
  return sums;
}

}  // namespace heapprofd
