// --malloc-info: asks the allocators of a session's processes for their own accounting.
#pragma once

#include <functional>

#include "engine/session.h"

namespace heapprofd {

// Waits, at most a few hundred milliseconds, until every process has answered; `serve` is
// called meanwhile, for this session and whoever else must not wait. A process answers
// from within its next allocation that takes the slow path, so one that allocates nothing
// stays silent: its MemoryContext then names no allocator.
void AskAllocators(Session& session, const std::function<void()>& serve);

}  // namespace heapprofd
