// The shortest way from a root to an object: why it is still there.
#pragma once

#include <cstdint>
#include <vector>

#include "object_graph/object_graph.h"

namespace heapprofd {

// Objects from a root to an object, both with it; empty: nothing holds it.
using ObjectPath = std::vector<uint32_t>;

// For each of `objects`.
std::vector<ObjectPath> NearestPaths(const ObjectGraph& graph,
                                     const std::vector<uint32_t>& objects);
}  // namespace heapprofd
