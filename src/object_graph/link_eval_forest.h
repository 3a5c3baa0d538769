// Trees of nodes that grow by links, and the least value on a path in one of them: what
// Lengauer and Tarjan's search for dominators asks for every reference of a graph, so it
// is here to be inlined. Paths get shorter when they are asked for.
#pragma once

#include <cstdint>
#include <span>

#include "base/column.h"

namespace heapprofd {

class LinkEvalForest {
 public:
  // One tree for each node. `values`: of the nodes, read when something is asked for;
  // those of linked nodes change no more.
  explicit LinkEvalForest(std::span<const uint32_t> values) : values_(values) {
    label_.ReserveForRandomAccess(values.size());
    ancestor_.ReserveForRandomAccess(values.size());
    for (uint32_t node = 0; node < values.size(); ++node)
      label_.push_back(node);
    ancestor_.resize(values.size(), kNone);
  }

  // `node`, the root of its tree, hangs on `parent` from now on.
  void Link(uint32_t node, uint32_t parent) { ancestor_[node] = parent; }

  // The node with the least value on the path from `node` to the root of its tree, that
  // root left out; the root itself for a root.
  uint32_t Evaluate(uint32_t node) {
    if (ancestor_[node] == kNone)
      return label_[node];
    path_.clear();
    for (uint32_t i = node; ancestor_[ancestor_[i]] != kNone; i = ancestor_[i])
      path_.push_back(i);
    for (; !path_.empty(); path_.pop_back()) {
      const uint32_t i = path_.back();
      const uint32_t above = ancestor_[i];
      if (values_[label_[above]] < values_[label_[i]])
        label_[i] = label_[above];
      ancestor_[i] = ancestor_[above];
    }
    return label_[node];
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  std::span<const uint32_t> values_;
  Column<uint32_t> label_;     // the node with the least value up to the ancestor
  Column<uint32_t> ancestor_;  // kNone: a root
  Column<uint32_t> path_;      // to keep its memory
};

}  // namespace heapprofd
