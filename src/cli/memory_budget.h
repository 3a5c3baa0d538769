// --memory-budget of what opens heap dumps: how much memory the columns of what is examined may take; the rest of
// them goes to nameless files in TMPDIR (base/column_memory.h).
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "cli/flag_table.h"

namespace heapprofd {

Flag MemoryBudgetFlag(const std::string& group, uint64_t* bytes);

// Before anything is read. 0: there is none.
Status UseMemoryBudget(uint64_t bytes);

}  // namespace heapprofd
