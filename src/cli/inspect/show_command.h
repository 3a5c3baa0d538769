// `heap_profile show FILE...`: what the end of a recording has said, from the file.
#pragma once

#include "cli/command_line.h"

namespace heapprofd {

CommandLine ShowLine();

}  // namespace heapprofd
