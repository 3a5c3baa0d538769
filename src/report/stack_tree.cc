#include "report/stack_tree.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace heapprofd {
namespace {

// In the order of kTreeFigures.
constexpr size_t kSize = 0;
constexpr size_t kAllocSize = 2;

// Sums of what files say: numbers of any size, which go round.
int64_t Added(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

int64_t Subtracted(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}

}  // namespace

Result<StackTree> StackTree::Of(StackOrder& order,
                                const ValuesByCallsite& values,
                                const CancelFlag& cancelled) {
  StackTree tree(order, values.has_variances(), cancelled);
  HPD_TRY(tree.AddStacks(values));
  return tree;
}

Status StackTree::AddStacks(const ValuesByCallsite& values) {
  sums_.push_back({});
  uint32_t shared = 0;  // with the last one that has values
  for (size_t place = 0; place < order_.stacks().size(); ++place) {
    if (cancelled_)
      return WasCancelled();
    const uint32_t stack = order_.stacks()[place];
    shared = std::min(shared, order_.SharedAt(place));
    const FlameValues own = values[stack];
    if (own.IsZero())
      continue;
    stacks_.push_back(stack);
    shared_.push_back(shared);
    lengths_.push_back(static_cast<uint32_t>(order_.FunctionsOf(stack).size()));
    own_.push_back({own, values.VarianceOf(stack)});
    Figures sums = sums_.back();
    for (size_t i = 0; i < sums.size(); ++i)
      sums[i] = Added(sums[i], own.*kTreeFigures[i]);
    sums_.push_back(sums);
    shared = std::numeric_limits<uint32_t>::max();
  }
  return {};
}

size_t StackTree::node_count() const {
  size_t count = 0;
  for (size_t place = 0; place < stacks_.size(); ++place)
    count += lengths_[place] - shared_[place];
  return count;
}

StackTree::Figures StackTree::SumOf(size_t begin, size_t end) const {
  Figures sum = sums_[end];
  for (size_t i = 0; i < sum.size(); ++i)
    sum[i] = Subtracted(sum[i], sums_[begin][i]);
  return sum;
}

double StackTree::ShareOf(size_t begin, size_t end) const {
  const Figures sum = SumOf(begin, end);
  const Figures& all = sums_[stacks_.size()];
  double share = 0;
  for (size_t i = 0; i < sum.size(); ++i) {
    if (all[i] != 0)
      share = std::max(
          share, std::abs(static_cast<double>(sum[i]) / static_cast<double>(all[i])));
  }
  return share;
}

// A place ends the nodes that are deeper than what the next one shares with it.
std::vector<StackTree::Chain> StackTree::Chains() const {
  struct Open {
    size_t begin;
    uint32_t above;  // depth of the node above the first one
    uint32_t last;
  };

  std::vector<Chain> chains;
  std::vector<Open> open;
  for (size_t place = 0; place <= stacks_.size(); ++place) {
    const uint32_t shared = place < stacks_.size() ? shared_[place] : 0;
    while (!open.empty() && open.back().last > shared) {
      Open& deepest = open.back();
      const uint32_t kept = std::max(deepest.above, shared);
      chains.push_back({ShareOf(deepest.begin, place), deepest.last - kept});
      deepest.last = kept;
      if (kept == deepest.above)
        open.pop_back();
    }
    if (place < stacks_.size() && lengths_[place] > shared)
      open.push_back({place, shared, lengths_[place]});
  }
  return chains;
}

// What a node needs so that not more than `max_nodes` have it.
double StackTree::LeastShare(size_t max_nodes) const {
  std::vector<Chain> chains = Chains();
  auto begin = chains.begin();
  auto end = chains.end();
  uint64_t room = max_nodes;
  // Between them is the largest one that has no room; before them are those that have.
  while (begin < end) {
    const auto middle = begin + (end - begin) / 2;
    std::nth_element(begin, middle, end,
                     [](const Chain& a, const Chain& b) { return a.share > b.share; });
    uint64_t nodes = 0;
    for (auto chain = begin; chain <= middle; ++chain)
      nodes += chain->nodes;
    if (nodes <= room) {
      room -= nodes;
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin == chains.end()
             ? 0
             : std::nextafter(begin->share, std::numeric_limits<double>::infinity());
}

class StackTree::Writer {
 public:
  Writer(const StackTree& tree, double least_share, ReportFunctions& functions)
      : tree_(tree),
        least_share_(least_share),
        rows_(*tree.order_.functions().names(),
              tree.order_.functions().table(),
              functions) {}

  Result<uint32_t> Write(std::string& out) {
    columns_.AddNode(0, ReportFunctions::kRoot, {});
    PushCallees(0, tree_.stacks_.size(), 0);
    while (!waiting_.empty()) {
      if (tree_.cancelled_)
        return WasCancelled();
      const Run next = waiting_.back();
      waiting_.pop_back();
      if (next.begin == next.end)
        columns_.AddNode(next.depth, ReportFunctions::kLeftOut, left_out_[next.begin]);
      else
        AddNode(next);
    }
    columns_.AppendTo(out);
    return columns_.count();
  }

 private:
  // A node: its stacks. Without any: what is left out, its row in `left_out_`.
  struct Run {
    size_t begin;
    size_t end;
    uint32_t depth;
    int64_t size = 0;
    int64_t alloc_size = 0;
  };

  // Stacks that end in the node come first.
  void AddNode(const Run& node) {
    NodeTotals own;
    size_t first = node.begin;
    for (; first < node.end && tree_.lengths_[first] == node.depth; ++first)
      own += tree_.own_[first];
    const uint32_t function = tree_.order_.FunctionAt(
        tree_.stacks_.span().subspan(node.begin, node.end - node.begin), node.depth - 1);
    columns_.AddNode(node.depth, rows_.Of(function), own);
    PushCallees(first, node.end, node.depth);
  }

  // The largest comes next, so it is put down last.
  void PushCallees(size_t begin, size_t end, uint32_t depth) {
    const size_t before = waiting_.size();
    NodeTotals rest;
    bool has_rest = false;
    for (size_t at = begin; begin < end; begin = at) {
      while (++at < end && tree_.shared_[at] > depth) {
      }
      if (least_share_ > 0 && tree_.ShareOf(begin, at) < least_share_) {
        for (size_t place = begin; place < at; ++place)
          rest += tree_.own_[place];
        has_rest = true;
        continue;
      }
      const Figures sum = tree_.SumOf(begin, at);
      waiting_.push_back({begin, at, depth + 1, sum[kSize], sum[kAllocSize]});
    }
    const auto callees = waiting_.begin() + static_cast<ptrdiff_t>(before);
    if (waiting_.end() - callees > 1)
      std::sort(callees, waiting_.end(), IsSmaller);
    if (has_rest && !rest.values.IsZero()) {
      waiting_.insert(waiting_.begin() + static_cast<ptrdiff_t>(before),
                      Run{left_out_.size(), left_out_.size(), depth + 1});
      left_out_.push_back(rest);
    }
  }

  static bool IsSmaller(const Run& a, const Run& b) {
    if (a.size != b.size)
      return a.size < b.size;
    return a.alloc_size != b.alloc_size ? a.alloc_size < b.alloc_size : a.begin > b.begin;
  }

  const StackTree& tree_;
  const double least_share_;
  FunctionRows rows_;
  TreeColumns columns_;
  std::vector<Run> waiting_;  // the next one last
  std::vector<NodeTotals> left_out_;
};

Result<uint32_t> StackTree::AppendTo(const ReportTreeLimits& limits,
                                     ReportFunctions& functions,
                                     std::string& out) const {
  // Half of them: each node may have a callee more that stands for the rest.
  const double least_share =
      node_count() <= limits.max_nodes ? 0 : LeastShare(limits.max_nodes / 2);
  return Writer(*this, least_share, functions).Write(out);
}

}  // namespace heapprofd
