// The table of the functions that hold the most memory, as wide as the terminal allows.
#pragma once

#include <string>

#include "cli/results/summary.h"

namespace heapprofd {

// What was live at the end; before it what was live at the peak, where that was at least
// 1.2 times as much or SummaryOptions::dump_at_max. "" where nothing was.
std::string FormatTopTables(const TargetProfile& profile,
                            const HeapDump& dump,
                            const SummaryOptions& options);

}  // namespace heapprofd
