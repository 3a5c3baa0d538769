// `heap_profile view FILE...`: the page of the report, served to this machine's browser,
// with what takes a program behind it.
#pragma once

#include "cli/command_line.h"

namespace heapprofd {

CommandLine ViewLine();

}  // namespace heapprofd
