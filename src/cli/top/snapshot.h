// What the live view shows, as a trace that every other command reads.
#pragma once

#include <string>

#include "base/status.h"
#include "cli/top/live_trace.h"

namespace heapprofd {

// Writes a new file in the working directory; gives its name.
Result<std::string> WriteSnapshot(const LiveProcesses& processes);

}  // namespace heapprofd
