// The table of the functions that hold the most memory, as wide as the terminal allows.
#pragma once

#include <string>

#include "cli/results/summary.h"

namespace heapprofd {

// What was live at the end, and before it, when SummaryOptions::dump_at_max, what was
// live when most was. "" where nothing was.
std::string FormatTopTables(const TargetProfile& profile,
                            const HeapDump& dump,
                            const SummaryOptions& options);

}  // namespace heapprofd
