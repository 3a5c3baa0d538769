// heap_profile hprof loaders: class loaders, and what is there because of them.
#pragma once

#include "base/status.h"
#include "cli/hprof/hprof_report.h"

namespace heapprofd {

Status PrintLoaders(OpenedDump& opened, const HprofView& view);

}  // namespace heapprofd
