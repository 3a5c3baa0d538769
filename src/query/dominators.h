// Immediate dominators in a directed graph: the last node that every path from the root
// to a node has to go through. What an object dominates is what its end would free.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "query/database.h"

namespace heapprofd {

// The edges of node n lead to targets[first[n]] ... targets[first[n + 1] - 1].
struct DirectedGraph {
  std::vector<uint32_t> first;
  std::vector<uint32_t> targets;

  size_t node_count() const { return first.empty() ? 0 : first.size() - 1; }
};

// By node, for what can be reached from node 0; kNoId for node 0 and the rest. By
// T. Lengauer and R. E. Tarjan, "A fast algorithm for finding dominators in a flowgraph"
// (1979), the simple form: O(edges * log(nodes)) whatever the graph. kUnavailable when
// cancelled.
Result<std::vector<uint32_t>> ImmediateDominators(const DirectedGraph& graph,
                                                  const CancelFlag& cancelled);

}  // namespace heapprofd
