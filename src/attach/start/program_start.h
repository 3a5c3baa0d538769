// Bringing a program that is about to run to the point at which all its libraries are
// loaded and none of its code, constructors included, has run.
#pragma once

#include <functional>

#include "attach/remote_process.h"
#include "attach/start/start_trap.h"
#include "attach/thread/traced_thread.h"
#include "base/status.h"

namespace heapprofd {

// `thread` has just stopped in its exec (PTRACE_EVENT_EXEC); afterwards it is stopped
// where its hooks can be put in. A program without a loader stays at its first
// instruction. `may_wait`: asked again and again whether its loader may take longer.
Status RunToStart(const RemoteProcess& process,
                  const std::function<bool()>& may_wait,
                  TracedThread* thread,
                  TrapKind kind = BestTrap());

}  // namespace heapprofd
