// Who holds what alone. The immediate dominator of an object is the last one that every
// path from the roots to it goes through; what an object dominates would be freed with
// it, and its retained size is the sum of that.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/column.h"
#include "base/status.h"
#include "object_graph/object_graph.h"

namespace heapprofd {

struct DominatorTree {
  Column<uint32_t> dominator;  // by object
  Column<uint32_t> order;      // what can be reached, each behind its dominator
};

// By the semi-NCA algorithm (L. Georgiadis, "Linear-time algorithms for dominators and
// related problems", 2005), which is the fastest in practice. An object without
// references that one other holds has that as its dominator and takes no part.
// kUnavailable when cancelled.
Result<DominatorTree> FindDominators(const ObjectGraph& graph,
                                     const std::atomic<bool>& cancelled);

// By object; 0: it cannot be reached.
Column<uint64_t> RetainedSizes(const ObjectGraph& graph, const DominatorTree& tree);

}  // namespace heapprofd
