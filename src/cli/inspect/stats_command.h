// `heap_profile stats FILE`: the figures of a recording, for people, programs and gates.
#pragma once

#include "cli/command_line.h"

namespace heapprofd {

CommandLine StatsLine();

}  // namespace heapprofd
