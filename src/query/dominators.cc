#include "query/dominators.h"

#include <algorithm>
#include <utility>

#include "profile/model.h"

namespace heapprofd {
namespace {

// Nodes are named by their number in the order of a depth-first search.
class DominatorFinder {
 public:
  explicit DominatorFinder(const DirectedGraph& graph) : graph_(graph) {}

  Result<std::vector<uint32_t>> Find(const CancelFlag& cancelled) {
    constexpr uint32_t kNodesPerCancelCheck = 1 << 14;
    Number();
    CollectPredecessors();
    const auto count = static_cast<uint32_t>(node_of_.size());
    semi_.resize(count);
    label_.resize(count);
    for (uint32_t i = 0; i < count; ++i)
      semi_[i] = label_[i] = i;
    ancestor_.assign(count, kNoId);
    dominator_.assign(count, 0);
    first_in_bucket_.assign(count, kNoId);
    next_in_bucket_.assign(count, kNoId);
    for (uint32_t i = count; i-- > 1;) {
      if (i % kNodesPerCancelCheck == 0 && cancelled)
        return Status(StatusCode::kUnavailable,
                      "cannot finish the query: it was cancelled");
      Visit(i);
    }
    return Result<std::vector<uint32_t>>(Complete());
  }

 private:
  void Number() {
    number_.assign(graph_.node_count(), kNoId);
    if (graph_.node_count() == 0)
      return;
    std::vector<std::pair<uint32_t, uint32_t>> pending;  // node, number of its parent
    pending.emplace_back(0, kNoId);
    while (!pending.empty()) {
      const auto [node, parent] = pending.back();
      pending.pop_back();
      if (number_[node] != kNoId)
        continue;
      const auto number = static_cast<uint32_t>(node_of_.size());
      number_[node] = number;
      node_of_.push_back(node);
      parent_.push_back(parent);
      for (uint32_t edge = graph_.first[node + 1]; edge-- > graph_.first[node];) {
        if (number_[graph_.targets[edge]] == kNoId)
          pending.emplace_back(graph_.targets[edge], number);
      }
    }
  }

  void CollectPredecessors() {
    first_predecessor_.assign(node_of_.size() + 1, 0);
    ForEachEdge([this](uint32_t, uint32_t to) { ++first_predecessor_[to + 1]; });
    for (size_t i = 1; i < first_predecessor_.size(); ++i)
      first_predecessor_[i] += first_predecessor_[i - 1];
    predecessors_.resize(first_predecessor_.back());
    std::vector<uint32_t> next(first_predecessor_.begin(), first_predecessor_.end() - 1);
    ForEachEdge(
        [this, &next](uint32_t from, uint32_t to) { predecessors_[next[to]++] = from; });
  }

  template <typename Use>
  void ForEachEdge(Use use) const {
    for (uint32_t from = 0; from < node_of_.size(); ++from) {
      const uint32_t node = node_of_[from];
      for (uint32_t edge = graph_.first[node]; edge < graph_.first[node + 1]; ++edge)
        use(from, number_[graph_.targets[edge]]);
    }
  }

  void Visit(uint32_t at) {
    for (uint32_t i = first_predecessor_[at]; i < first_predecessor_[at + 1]; ++i)
      semi_[at] = std::min(semi_[at], semi_[Evaluate(predecessors_[i])]);
    next_in_bucket_[at] = first_in_bucket_[semi_[at]];
    first_in_bucket_[semi_[at]] = at;
    const uint32_t parent = parent_[at];
    ancestor_[at] = parent;
    for (uint32_t i = first_in_bucket_[parent]; i != kNoId;) {
      const uint32_t best = Evaluate(i);
      dominator_[i] = semi_[best] < semi_[i] ? best : parent;
      i = std::exchange(next_in_bucket_[i], kNoId);
    }
    first_in_bucket_[parent] = kNoId;
  }

  // The node with the least semidominator on the path from `at` to the root of its tree
  // in the forest, that root left out. Shortens the paths.
  uint32_t Evaluate(uint32_t at) {
    if (ancestor_[at] == kNoId)
      return label_[at];
    path_.clear();
    for (uint32_t i = at; ancestor_[ancestor_[i]] != kNoId; i = ancestor_[i])
      path_.push_back(i);
    while (!path_.empty()) {
      const uint32_t i = path_.back();
      path_.pop_back();
      const uint32_t above = ancestor_[i];
      if (semi_[label_[above]] < semi_[label_[i]])
        label_[i] = label_[above];
      ancestor_[i] = ancestor_[above];
    }
    return label_[at];
  }

  std::vector<uint32_t> Complete() {
    std::vector<uint32_t> result(graph_.node_count(), kNoId);
    for (uint32_t i = 1; i < node_of_.size(); ++i) {
      if (dominator_[i] != semi_[i])
        dominator_[i] = dominator_[dominator_[i]];
      result[node_of_[i]] = node_of_[dominator_[i]];
    }
    return result;
  }

  const DirectedGraph& graph_;
  std::vector<uint32_t> number_;   // by node
  std::vector<uint32_t> node_of_;  // this and what follows: by number
  std::vector<uint32_t> parent_;
  std::vector<uint32_t> first_predecessor_;
  std::vector<uint32_t> predecessors_;
  std::vector<uint32_t> semi_;
  std::vector<uint32_t> label_;
  std::vector<uint32_t> ancestor_;
  std::vector<uint32_t> dominator_;
  std::vector<uint32_t> first_in_bucket_;
  std::vector<uint32_t> next_in_bucket_;
  std::vector<uint32_t> path_;
};

}  // namespace

Result<std::vector<uint32_t>> ImmediateDominators(const DirectedGraph& graph,
                                                  const CancelFlag& cancelled) {
  return DominatorFinder(graph).Find(cancelled);
}

}  // namespace heapprofd
