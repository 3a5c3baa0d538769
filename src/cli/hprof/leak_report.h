// Leak suspects in plain words: where memory has piled up, what of, and why it is still
// there.
#pragma once

#include "cli/hprof/hprof_report.h"

namespace heapprofd {

Status PrintLeaks(OpenedDump& opened, const HprofView& view);

}  // namespace heapprofd
