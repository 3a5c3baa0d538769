#include "report/report_tree.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "query/child_lists.h"
#include "report/tree_columns.h"

namespace heapprofd {
namespace {

// How large nodes are, as the largest of their shares in any of the four figures.
class Shares {
 public:
  explicit Shares(const FlameTree& tree) : tree_(tree) {
    for (size_t row = 0; row < tree.nodes.size(); ++row) {
      if (tree.nodes[row].parent == kNoId)
        all_ += tree.CumulativeOf(row);
    }
  }

  double Of(size_t row) const {
    const FlameValues values = tree_.CumulativeOf(row);
    double share = 0;
    for (const auto figure : kTreeFigures) {
      if (all_.*figure != 0)
        share = std::max(share, std::abs(static_cast<double>(values.*figure) /
                                         static_cast<double>(all_.*figure)));
    }
    return share;
  }

  // What a node needs so that not more than `max_nodes` have it.
  double LeastOf(size_t max_nodes) const {
    if (tree_.nodes.size() <= max_nodes)
      return 0;
    std::vector<double> shares(tree_.nodes.size());
    for (size_t row = 0; row < shares.size(); ++row)
      shares[row] = Of(row);
    const auto least = shares.end() - static_cast<ptrdiff_t>(max_nodes);
    std::nth_element(shares.begin(), least, shares.end());
    return std::nextafter(*least, 2.0);
  }

 private:
  const FlameTree& tree_;
  FlameValues all_;
};

class TreeWriter {
 public:
  TreeWriter(const FlameTree& tree,
             const ReportTreeLimits& limits,
             ReportFunctions& functions)
      : tree_(tree),
        rows_(*tree.names, tree.functions, functions),
        children_(ChildListsOf(tree.nodes.size(),
                               [&tree](uint32_t row) { return tree.nodes[row].parent; })),
        shares_(tree),
        // Half of them: each node may have a callee more that stands for the rest.
        least_share_(tree.nodes.size() <= limits.max_nodes
                         ? 0
                         : shares_.LeastOf(limits.max_nodes / 2)) {}

  uint32_t Write(std::string& out) {
    columns_.AddNode(0, ReportFunctions::kRoot, {});
    for (uint32_t row = 0; row < tree_.nodes.size(); ++row) {
      if (tree_.nodes[row].parent == kNoId)
        callees_.push_back(row);
    }
    PushCallees(1);
    while (!waiting_.empty()) {
      const Waiting next = waiting_.back();
      waiting_.pop_back();
      if (next.row == kNoId)
        columns_.AddNode(next.depth, ReportFunctions::kLeftOut, left_out_[next.left_out]);
      else
        AddRow(next.row, next.depth);
    }
    columns_.AppendTo(out);
    return columns_.count();
  }

 private:
  struct Waiting {
    uint32_t row;  // kNoId: what is left out
    uint32_t depth;
    uint32_t left_out;
  };

  void AddRow(uint32_t row, uint32_t depth) {
    const FlameNode& node = tree_.nodes[row];
    columns_.AddNode(depth, rows_.Of(node.function), OwnOf(row));
    for (uint32_t child = children_.first[row]; child != kNoId;
         child = children_.next[child])
      callees_.push_back(child);
    PushCallees(depth + 1);
  }

  NodeTotals OwnOf(uint32_t row) const {
    const uint32_t self = tree_.nodes[row].self_row;
    return {tree_.SelfOf(row),
            self == kNoId || tree_.variances.empty() ? 0 : tree_.variances[self]};
  }

  NodeTotals AllOf(uint32_t row) const {
    return {tree_.CumulativeOf(row), tree_.variances.empty() ? 0 : tree_.VarianceOf(row)};
  }

  // Takes what is in `callees_`. The largest comes next, so that it is put down last.
  void PushCallees(uint32_t depth) {
    std::vector<uint32_t>& rows = callees_;
    NodeTotals rest;
    const auto is_small = [&](uint32_t row) {
      return least_share_ > 0 && shares_.Of(row) < least_share_;
    };
    for (const uint32_t row : rows) {
      if (!is_small(row))
        continue;
      const NodeTotals all = AllOf(row);
      rest.values += all.values;
      rest.variance += all.variance;
    }
    std::erase_if(rows, is_small);
    std::stable_sort(rows.begin(), rows.end(), [this](uint32_t a, uint32_t b) {
      const FlameValues of_a = tree_.CumulativeOf(a);
      const FlameValues of_b = tree_.CumulativeOf(b);
      return of_a.size != of_b.size ? of_a.size < of_b.size
                                    : of_a.alloc_size < of_b.alloc_size;
    });
    if (!rest.values.IsZero()) {
      waiting_.push_back({kNoId, depth, static_cast<uint32_t>(left_out_.size())});
      left_out_.push_back(rest);
    }
    for (const uint32_t row : rows)
      waiting_.push_back({row, depth, 0});
    rows.clear();
  }

  const FlameTree& tree_;
  FunctionRows rows_;
  const ChildLists children_;
  const Shares shares_;
  const double least_share_;
  std::vector<uint32_t> callees_;  // of the node at hand
  std::vector<Waiting> waiting_;   // the next one last
  std::vector<NodeTotals> left_out_;
  TreeColumns columns_;
};

}  // namespace

uint32_t AppendReportTree(const FlameTree& tree,
                          const ReportTreeLimits& limits,
                          ReportFunctions& functions,
                          std::string& out) {
  return TreeWriter(tree, limits, functions).Write(out);
}

}  // namespace heapprofd
