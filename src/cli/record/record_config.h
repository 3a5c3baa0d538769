// `heap_profile record` and the compatibility name `perfetto`: recordings described by a
// trace configuration.
#pragma once

#include "cli/command_line.h"

namespace heapprofd {

CommandLine RecordConfigLine();

// As Perfetto's client: the output is one trace file.
CommandLine PerfettoCommandLine();

}  // namespace heapprofd
