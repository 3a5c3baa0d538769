// A call tree as columns: depth first, the larger callees of a function before the
// smaller ones, so that the page places them from left to right in one pass.
#pragma once

#include <cstdint>
#include <string>

#include "query/flame_tree.h"
#include "report/report_functions.h"

namespace heapprofd {

struct ReportTreeLimits {
  // Of a tree with more, the smallest callees are taken together.
  size_t max_nodes = size_t{1} << 20;
};

// Appends the number of nodes, whether all that was allocated is live (0 or 1), and the
// columns: depth (how much less than one more than that of the node before), function, and
// of the node's own memory live size, live count, unless all is live allocated size and
// allocated count, and the standard error of the live size. The first node is the root of
// all. Returns the number of nodes.
uint32_t AppendReportTree(const FlameTree& tree,
                          const ReportTreeLimits& limits,
                          ReportFunctions& functions,
                          std::string& out);

}  // namespace heapprofd
