// The summary of a recording, made of its trace or of any other file: at its end and by
// `heap_profile show`.
#pragma once

#include <string>

#include "cli/inspect/opened_file.h"
#include "cli/results/summary.h"

namespace heapprofd {

// Of `options` what is not known by the file: how and where it is shown.
std::string FormatFile(const OpenedFile& file, SummaryOptions options);

}  // namespace heapprofd
