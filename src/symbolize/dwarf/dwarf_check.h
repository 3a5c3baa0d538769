// What libdw relies on and does not check itself, found by fuzzing: without it, foreign
// DWARF could lead it out of its sections.
#pragma once

#include <elfutils/libdw.h>

namespace heapprofd {

// False when this DWARF must not be read: a string section has no end.
bool IsSafeToRead(Dwarf* dwarf);

}  // namespace heapprofd
