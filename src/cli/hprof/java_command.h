// heap_profile java: a heap dump of a running virtual machine, and what hprof's views say
// about it, in one command.
#pragma once

#include "cli/command_line.h"

namespace heapprofd {

CommandLine JavaLine();

}  // namespace heapprofd
