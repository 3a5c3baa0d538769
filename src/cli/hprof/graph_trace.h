// heap_profile hprof trace: a heap dump as a trace of Perfetto, for its UI and for those
// who read nothing else.
#pragma once

#include <string>

#include "base/status.h"
#include "cli/hprof/opened/opened_dump.h"

namespace heapprofd {

// The file appears whole or not at all. Notes are printed. `is_strict`: there is none of a
// damaged dump.
Status WriteGraphTrace(OpenedDump opened, const std::string& output, bool is_strict);

}  // namespace heapprofd
