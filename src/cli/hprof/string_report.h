// heap_profile hprof strings: texts that a heap has several times.
#pragma once

#include "base/status.h"
#include "cli/hprof/hprof_report.h"

namespace heapprofd {

Status PrintStrings(OpenedDump& opened, const HprofView& view);

}  // namespace heapprofd
