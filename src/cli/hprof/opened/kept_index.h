// The index of a dump beside it: made on request, used whenever it is there and fits.
#pragma once

#include "base/status.h"
#include "cli/hprof/opened/opened_dump.h"
#include "hprof/load_graph.h"

namespace heapprofd {

// From its index, or from the dump itself. That an index is not used, or could not be
// kept, becomes a note.
Result<hprof::HeapGraph> LoadGraphOf(OpenedDump* opened);

}  // namespace heapprofd
