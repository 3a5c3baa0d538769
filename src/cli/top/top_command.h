// `heap_profile top`: who holds memory while programs run.
#pragma once

#include "cli/command_line.h"

namespace heapprofd {

CommandLine TopLine();

}  // namespace heapprofd
