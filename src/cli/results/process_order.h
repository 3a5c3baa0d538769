// In which order the processes of a recording are shown.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "cli/results/summary.h"
#include "profile/model.h"

namespace heapprofd {

bool HasSamples(const TargetProfile& profile);

// By which processes are listed, the highest first.
std::pair<bool, double> RankOf(const TargetProfile& profile);

// Indices of `profiles`. First comes `program`, the one process that the user has started
// or given by number (0: there is no such one), unless it is a mere wrapper of one that
// has much more; then the others, the largest first.
std::vector<size_t> OrderOf(const std::vector<const TargetProfile*>& profiles,
                            pid_t program);

// "g++ (pid 12)", when another process is shown first; else "".
std::string ProgramBehindFirst(const std::vector<ProcessResult>& ordered, pid_t program);

// The process that had more memory than the one that is shown first; "": there is none.
std::string LargerThanFirst(const std::vector<ProcessResult>& ordered);

}  // namespace heapprofd
