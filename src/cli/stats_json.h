// Figures of a recording for benchmarks and scripts: written to the file that
// HEAPPROFD_STATS_JSON names.
#pragma once

#include "base/status.h"
#include "cli/recording.h"
#include "engine/session.h"

namespace heapprofd {

// Does nothing when the variable is not set or empty. kIo: the file cannot be written.
Status WriteStatsJson(const Session& session, const Recording& recording);

}  // namespace heapprofd
