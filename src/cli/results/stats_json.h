// Figures of a recording for benchmarks and scripts: written to the file that
// HEAPPROFD_STATS_JSON names.
#pragma once

#include "base/status.h"
#include "cli/record/program_run.h"
#include "record/trace_recording.h"

namespace heapprofd {

inline constexpr char kStatsVariable[] = "HEAPPROFD_STATS_JSON";

// Does nothing when the variable is not set or empty. kIo: the file cannot be written.
// `usage`: of the program that was started, zeros when none was.
Status WriteStatsJson(const TraceRecording& recording, const ProgramUsage& usage);

}  // namespace heapprofd
