// java_heap_dump: Perfetto's tool of this name. Has Perfetto on a device write graphs of
// the heaps of Java programs, and fetches the trace.
#pragma once

#include "cli/command_line.h"

namespace heapprofd {

CommandLine JavaHeapDumpLine();

}  // namespace heapprofd
