// The processes of a finished recording with names for their functions.
#pragma once

#include <sys/types.h>

#include <vector>

#include "cli/record/live_view.h"
#include "cli/results/summary.h"
#include "record/trace_recording.h"
#include "symbolize/symbolize_profile.h"

namespace heapprofd {

struct NamedTarget {
  Target* target;
  ProcessResult result;
};

// Looks the names up; in the order in which they are shown (cli/results/process_order.h).
std::vector<NamedTarget> NameTargets(const TraceRecording& recording,
                                     const LiveView& view,
                                     const SymbolizeOptions& options,
                                     pid_t program);

// The search for names was not finished.
bool WasInterrupted(const std::vector<NamedTarget>& named);

}  // namespace heapprofd
