// `heap_profile diff A B`: what changed from one recording to another.
#pragma once

#include "cli/command_line.h"

namespace heapprofd {

CommandLine DiffLine();

}  // namespace heapprofd
