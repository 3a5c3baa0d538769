// Records that a recording has lost: no limits hold what is missing, so whoever tells
// figures, or judges by them, says it.
#pragma once

#include <string>
#include <vector>

#include "cli/inspect/opened_file.h"

namespace heapprofd {

// A line for each such process, at most ten.
std::vector<std::string> MissingRecords(const OpenedFile& file);

// What was not right in the file, and these.
std::vector<std::string> WarningsOf(const OpenedFile& file);

}  // namespace heapprofd
