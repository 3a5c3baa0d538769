// Bringing a program that is about to run to the point at which all its libraries are
// loaded and none of its code, constructors included, has run.
#pragma once

#include "attach/remote_process.h"
#include "attach/traced_thread.h"
#include "base/status.h"

namespace heapprofd {

// `thread` has just stopped in its exec (PTRACE_EVENT_EXEC); afterwards it is stopped
// where its hooks can be put in. A program without a loader stays at its first
// instruction.
Status RunToStart(const RemoteProcess& process, TracedThread* thread);

}  // namespace heapprofd
