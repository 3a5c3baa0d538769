// Stacks end in the allocation function that was called (profile/allocation_functions.h).
// What is ours to show is told of its caller.
#pragma once

#include <vector>

#include "query/flame_tree.h"
#include "tables/imported_trace.h"

namespace heapprofd {

// By frame: whether it is an allocation function and nothing else.
std::vector<bool> AllocatorFrames(const ImportedTrace& trace);

// Memory allocated in malloc and the like becomes memory of who called it.
void MoveToCallers(const ImportedTrace& trace, ValuesByCallsite* values);

}  // namespace heapprofd
