// The table of heap_profile's flags for recording: every option, its help, and what it
// changes in Options.
#pragma once

#include <vector>

#include "cli/flag_table.h"
#include "cli/record/options.h"

namespace heapprofd {

// `options` must outlive the flags.
std::vector<Flag> RecordFlags(Options& options);

}  // namespace heapprofd
