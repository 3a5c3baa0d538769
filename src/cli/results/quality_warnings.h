// What a reader must know before trusting a recording's figures, with the remedy. A cause
// is named only where something has counted it; else it says what is known.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cli/results/summary.h"

namespace heapprofd {

// Of one process, one line each. Empty: nothing. `block_timeout_us`: as in SessionConfig.
std::vector<std::string> QualityWarnings(const ProcessResult& process,
                                         uint64_t block_timeout_us = 0);

// What the summary's rows of the processes behind the first do not show: losses, and
// memory of which malloc knows nothing.
std::vector<std::string> WarningsOfOthers(const std::vector<ProcessResult>& processes);

// Of what did not arrive: the figures (profile/figures.h) that are not 0.
std::vector<std::pair<std::string, uint64_t>> MissingCounts(const Quality& quality);

// Records or samples did not arrive, so that the error bar does not hold what is missing.
bool IsIncomplete(const Quality& quality);

}  // namespace heapprofd
