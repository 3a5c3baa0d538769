// The main job: run a program, record its heap, write the files, show the summary.
#pragma once

#include "cli/options.h"

namespace heapprofd {

// Returns the exit code of the tool: the program's own, or ExitCode.
int RunRecord(const Options& options);

// The same for processes that already run. They go on unharmed afterwards.
int RunRecordRunning(const Options& options);

}  // namespace heapprofd
