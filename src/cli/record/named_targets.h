// The processes of a finished recording with names for their functions, in the order in
// which they are shown.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
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

bool HasSamples(const TargetProfile& profile);

// By which processes are listed, the highest first.
std::pair<bool, double> RankOf(const TargetProfile& profile);

// Looks the names up. First comes `program`, the one process that the user has started or
// given by number (0: there is no such one), unless it is a mere wrapper of one that has
// much more; then the others, the largest first.
std::vector<NamedTarget> NameTargets(const TraceRecording& recording,
                                     const LiveView& view,
                                     const SymbolizeOptions& options,
                                     pid_t program);

// The search for names was not finished.
bool WasInterrupted(const std::vector<NamedTarget>& named);

// "g++ (pid 12)", when another process is shown first; else "".
std::string ProgramBehindFirst(const std::vector<NamedTarget>& named, pid_t program);

// The process that had more memory than the one that is shown first; "": there is none.
std::string LargerThanFirst(const std::vector<NamedTarget>& named);

}  // namespace heapprofd
