// heap_profile hprof paths: what ways lead from roots to the objects of a class.
#pragma once

#include "base/status.h"
#include "cli/hprof/hprof_report.h"

namespace heapprofd {

Status PrintMergedPaths(OpenedDump& opened, const HprofView& view);

}  // namespace heapprofd
