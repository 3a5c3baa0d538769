// Who holds what alone and how much that is: of a graph that was examined just now, or
// as a file has kept it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/column.h"
#include "base/status.h"
#include "object_graph/dominators.h"
#include "object_graph/object_graph.h"

namespace heapprofd {

class Retention {
 public:
  Retention(const ObjectGraph& graph, DominatorTree tree);
  explicit Retention(std::shared_ptr<const KeptObjects> kept);

  uint32_t DominatorOf(uint32_t object) const {
    return kept_ == nullptr ? dominators_[object] : kept_->DominatorOf(object);
  }

  // 0: it cannot be reached.
  uint64_t RetainedBy(uint32_t object) const {
    return kept_ == nullptr ? retained_[object] : kept_->RetainedBy(object);
  }

  uint64_t reachable_count() const { return reachable_count_; }

  uint64_t reachable_bytes() const { return reachable_bytes_; }

 private:
  std::shared_ptr<const KeptObjects> kept_;  // null: the columns have it
  Column<uint32_t> dominators_;
  Column<uint64_t> retained_;
  uint64_t reachable_count_ = 0;
  uint64_t reachable_bytes_ = 0;
};

// Of a graph that a file has kept: what it says. kUnavailable when cancelled.
Result<Retention> FindRetention(const ObjectGraph& graph,
                                const std::atomic<bool>& cancelled);

// By group: what the objects of its types retain together. One that another of its group
// dominates is in that one's size already. `group_of`: by type, less than their number.
std::vector<uint64_t> RetainedByGroup(const ObjectGraph& graph,
                                      const Retention& retention,
                                      const std::vector<uint32_t>& group_of);

}  // namespace heapprofd
