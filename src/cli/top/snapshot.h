// What the live view shows, as a trace that every other command reads.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/inspect/restored_profile.h"

namespace heapprofd {

// Writes a new file in the working directory; gives its name.
Result<std::string> WriteSnapshot(
    const std::vector<std::unique_ptr<RestoredProfile>>& processes);

}  // namespace heapprofd
