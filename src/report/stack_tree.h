// The call tree of one dump, from the order of the trace's stacks (query/stacks/stack_order.h).
// Nodes come into being when they are written, so those too small to be shown never do.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "query/stacks/stack_order.h"
#include "report/report_tree.h"
#include "report/tree_columns.h"

namespace heapprofd {

class StackTree {
 public:
  // Of the stacks with values, by row of trace.stacks. kUnavailable when cancelled, then
  // and later. `order` and `cancelled` must outlive this.
  static Result<StackTree> Of(StackOrder& order,
                              const ValuesByCallsite& values,
                              const CancelFlag& cancelled);

  // Without the root of all.
  size_t node_count() const;

  bool has_errors() const { return has_errors_; }

  // As AppendReportTree.
  Result<uint32_t> AppendTo(const ReportTreeLimits& limits,
                            ReportFunctions& functions,
                            std::string& out) const;

 private:
  class Writer;

  using Figures = std::array<int64_t, kTreeFigures.size()>;

  // Nodes that the same stacks go through.
  struct Chain {
    double share;  // of each of them: the largest of its shares in the four figures
    uint64_t nodes;
  };

  StackTree(StackOrder& order, bool has_errors, const CancelFlag& cancelled)
      : order_(order), cancelled_(cancelled), has_errors_(has_errors) {}

  Status AddStacks(const ValuesByCallsite& values);
  Figures SumOf(size_t begin, size_t end) const;
  double ShareOf(size_t begin, size_t end) const;
  std::vector<Chain> Chains() const;
  double LeastShare(size_t max_nodes) const;

  StackOrder& order_;  // knows more functions after its use
  const CancelFlag& cancelled_;
  bool has_errors_;
  // By place, of the stacks with values.
  Column<uint32_t> stacks_;
  Column<uint32_t> shared_;   // functions that it begins with as the one before it does
  Column<uint32_t> lengths_;  // functions
  Column<NodeTotals> own_;
  Column<Figures> sums_;  // of all before this place; one more than stacks
};

}  // namespace heapprofd
