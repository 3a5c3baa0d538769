// heap_profile as a recorder.
#pragma once

#include "cli/record/options.h"

namespace heapprofd {

// Starts the program and records it; gives the exit code.
int RunProgram(const Options& options);

// Records processes that are already there, or come; gives the exit code.
int RunOnProcesses(const Options& options);

}  // namespace heapprofd
