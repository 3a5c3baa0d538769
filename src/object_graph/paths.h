// The shortest way from a root to an object: why it is still there.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/column.h"
#include "object_graph/object_graph.h"

namespace heapprofd {

// Objects from a root to an object, both with it; empty: nothing holds it.
using ObjectPath = std::vector<uint32_t>;

// For each of `objects`.
std::vector<ObjectPath> NearestPaths(const ObjectGraph& graph,
                                     const std::vector<uint32_t>& objects);

// Where the ways to many objects go through the same groups of objects, types for
// instance. Objects of one group that follow each other are one step.
struct MergedWay {
  static constexpr uint32_t kTop = UINT32_MAX;

  uint32_t above;  // the step before, an index; kTop: it begins at a root
  uint32_t group;
  uint64_t objects = 0;  // of those that were asked for: with this as their way or end
  uint64_t bytes = 0;    // of these
};

inline constexpr size_t kMostMergedWays = 1 << 20;  // what is beyond ends where it is

struct MergedWays {
  std::vector<MergedWay> ways;
  bool is_whole = true;  // false: there were more than kMostMergedWays
};

// The one above each object on the nearest way to it: kHeldByRoots, kUnreachable.
Column<uint32_t> NearestAbove(const ObjectGraph& graph);

// The nearest ways to all objects of which `is_wanted` is true, each behind the step
// before it. `group_of` gives the group of an object.
MergedWays MergeNearestPaths(const ObjectGraph& graph,
                             const std::function<bool(uint32_t object)>& is_wanted,
                             const std::function<uint32_t(uint32_t object)>& group_of);

}  // namespace heapprofd
