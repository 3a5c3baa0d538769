// What the user wished for and the program's heaps, compared.
#pragma once

#include <string>
#include <vector>

#include "engine/heap_selection.h"
#include "profile/model.h"

namespace heapprofd {

// Heaps that were asked for and never registered, and registered ones that nobody asked
// for: one line each, with the remedy. Empty: nothing to say.
std::vector<std::string> HeapNotes(const TargetProfile& profile,
                                   const HeapSelection& selection);

}  // namespace heapprofd
