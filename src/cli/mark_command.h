// `heap_profile mark`: a dump with a name in what is recorded now.
#pragma once

#include "cli/command_line.h"

namespace heapprofd {

CommandLine MarkLine();

}  // namespace heapprofd
