// `heap_profile export --format FORMAT FILE`: a heap of a file for other programs.
#pragma once

#include "cli/command_line.h"

namespace heapprofd {

CommandLine ExportLine();

}  // namespace heapprofd
