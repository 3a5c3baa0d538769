// heap_profile as such: the command line of a recording of programs, processes or a
// device.
#pragma once

#include "cli/command_line.h"
#include "cli/record/options.h"

namespace heapprofd {

CommandLine RecordingLine();

// The same without anything to run: fills `options`, which must outlive it.
CommandLine RecordingLineFor(Options& options);

}  // namespace heapprofd
