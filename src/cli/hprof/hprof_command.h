// heap_profile hprof: heap dumps of virtual machines, converted, merged and examined.
#pragma once

#include "cli/command_line.h"

namespace heapprofd {

CommandLine HprofLine();

// As Android's program of this name: exit codes too.
CommandLine HprofConvLine();

}  // namespace heapprofd
