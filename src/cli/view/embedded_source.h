// Source code in a page that nobody serves: what heap_profile view would answer about the
// lines of each heap's end and peak.
#pragma once

#include <string>

#include "base/status.h"
#include "query/trace_database.h"

namespace heapprofd {

// JSON: "answers" by what the page would ask, and "texts", of which each "text" of an
// answer is the index. Of each heap the files with most memory; texts of files that are
// named as source code is, as far as there is room. kUnavailable when cancelled.
Result<std::string> EmbeddedSource(TraceDatabase& database);

}  // namespace heapprofd
