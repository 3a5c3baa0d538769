// What has become more, and what less, from one dump to another of the same program.
#pragma once

#include "cli/hprof/hprof_report.h"

namespace heapprofd {

// `view.object` is the file with the older dump.
Status PrintComparison(OpenedDump& newer, const HprofView& view);

}  // namespace heapprofd
