// What has become more, and what less, from one dump to another of the same program.
#pragma once

#include "cli/hprof/hprof_report.h"

namespace heapprofd {

// Lets go of the older dump when it has been counted.
Status PrintComparison(OpenedDump older, OpenedDump& newer, const HprofView& view);

}  // namespace heapprofd
