// --malloc-info: asks the allocators of a session's processes for their own accounting.
#pragma once

#include "engine/session.h"

namespace heapprofd {

// Waits, at most a few hundred milliseconds and serving the session meanwhile, until
// every process has answered. A process answers from within its next allocation that
// takes the slow path, so one that allocates nothing stays silent: its MemoryContext then
// names no allocator.
void AskAllocators(Session& session);

}  // namespace heapprofd
