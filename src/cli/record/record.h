// heap_profile as a recorder.
#pragma once

#include "cli/record/options.h"
#include "trace/trace_file.h"

namespace heapprofd {

// Starts the program and records it; gives the exit code.
int RunProgram(const Options& options);

// The same without names, summary or files: dumps go to `trace` whenever SIGUSR1 asks for
// one, and at the end.
int DumpProgram(const Options& options, TraceFile trace);

// Records processes that are already there, or come; gives the exit code.
int RunOnProcesses(const Options& options);

}  // namespace heapprofd
