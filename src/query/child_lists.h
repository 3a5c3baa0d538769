// The children of each node of a forest that only knows parents.
#pragma once

#include <cstdint>
#include <vector>

#include "profile/model.h"

namespace heapprofd {

// By node: its first child, and the next child of the same parent; kNoId where there is
// none. Children are in the order of their numbers.
struct ChildLists {
  std::vector<uint32_t> first;
  std::vector<uint32_t> next;
};

// `parent_of(node)` of the nodes 0 to count - 1; kNoId: it has none.
template <typename ParentOf>
ChildLists ChildListsOf(size_t count, ParentOf parent_of) {
  ChildLists lists;
  lists.first.assign(count, kNoId);
  lists.next.assign(count, kNoId);
  for (auto node = static_cast<uint32_t>(count); node-- > 0;) {
    const uint32_t parent = parent_of(node);
    if (parent == kNoId)
      continue;
    lists.next[node] = lists.first[parent];
    lists.first[parent] = node;
  }
  return lists;
}

}  // namespace heapprofd
