// heap_profile hprof object: what is in one object.
#pragma once

#include "base/status.h"
#include "cli/hprof/hprof_report.h"

namespace heapprofd {

Status PrintObject(OpenedDump& opened, const HprofView& view);

}  // namespace heapprofd
