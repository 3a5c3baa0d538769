// The shortest way from a root to an object: why it is still there.
#pragma once

#include <cstdint>
#include <vector>

#include "object_graph/object_graph.h"

namespace heapprofd {

// Objects from a root to `object`, both with it; empty: nothing holds it.
std::vector<uint32_t> NearestPath(const ObjectGraph& graph, uint32_t object);

}  // namespace heapprofd
