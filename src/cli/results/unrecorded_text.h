// What is said about programs that were started and could not be recorded.
#pragma once

#include <string>
#include <vector>

#include "profile/unrecorded_programs.h"

namespace heapprofd {

// One line per reason: how many, which, why, and what to do.
std::vector<std::string> UnrecordedWarnings(
    const std::vector<UnrecordedPrograms>& groups);

}  // namespace heapprofd
