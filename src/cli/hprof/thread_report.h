// heap_profile hprof threads: what threads were doing, and what they hold.
#pragma once

#include "base/status.h"
#include "cli/hprof/hprof_report.h"

namespace heapprofd {

Status PrintThreads(OpenedDump& opened, const HprofView& view);

}  // namespace heapprofd
