// `heap_profile query` and `trace_processor_shell`: exit code 130 when Ctrl-C stopped a
// query.
#pragma once

#include "cli/command_line.h"
#include "cli/query/query_options.h"

namespace heapprofd {

CommandLine QueryCommandLine();
CommandLine TraceProcessorShellLine();

}  // namespace heapprofd
