// `heap_profile leaks FILE`: stacks that grow or keep what they allocate.
#pragma once

#include "cli/command_line.h"

namespace heapprofd {

CommandLine LeaksLine();

}  // namespace heapprofd
