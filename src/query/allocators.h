// Stacks end in the allocation function that was called (profile/allocation_functions.h).
// What is ours to show is told of its caller.
#pragma once

#include <cstdint>
#include <vector>

#include "query/flame_tree.h"
#include "tables/imported_trace.h"

namespace heapprofd {

// By frame: whether it is an allocation function and nothing else.
std::vector<bool> AllocatorFrames(const ImportedTrace& trace);

// By callsite: the one that holds what is allocated there. Memory that malloc and the like
// allocate is their callers'.
std::vector<uint32_t> HoldersOf(const ImportedTrace& trace);

// Memory allocated in malloc and the like becomes memory of who called it.
void MoveToCallers(const ImportedTrace& trace, ValuesByCallsite* values);

}  // namespace heapprofd
