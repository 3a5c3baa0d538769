// heap_profile hprof collections: how full arrays of references are, and whose they are.
#pragma once

#include "base/status.h"
#include "cli/hprof/hprof_report.h"

namespace heapprofd {

Status PrintCollections(OpenedDump& opened, const HprofView& view);

}  // namespace heapprofd
