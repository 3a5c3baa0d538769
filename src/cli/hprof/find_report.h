// heap_profile hprof find: objects by class and by what is in their fields.
#pragma once

#include "base/status.h"
#include "cli/hprof/hprof_report.h"

namespace heapprofd {

Status PrintFound(OpenedDump& opened, const HprofView& view);

}  // namespace heapprofd
