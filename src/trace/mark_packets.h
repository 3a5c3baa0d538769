// Moments that a program has named, as Perfetto shows them: instants on a track "heap
// marks" below the process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profile/model.h"

namespace heapprofd {

// Whole packets: the tracks of the process and of its marks, then one event per mark.
// Times are in the domain that dumps have, CLOCK_MONOTONIC_COARSE.
std::vector<std::string> MarkPackets(const TargetProfile& profile, uint32_t sequence_id);

}  // namespace heapprofd
