// What the user wished for and the program's heaps, compared, and which of its allocators
// was not seen.
#pragma once

#include <string>
#include <vector>

#include "engine/heap_selection.h"
#include "profile/model.h"

namespace heapprofd {

// Heaps that were asked for and never registered, and registered ones that nobody asked
// for, and a malloc beside those heaps: one line each, with the remedy. Empty: nothing to say.
std::vector<std::string> HeapNotes(const TargetProfile& profile,
                                   const HeapSelection& selection);

}  // namespace heapprofd
