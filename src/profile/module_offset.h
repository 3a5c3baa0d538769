// What code is called that nobody knows a function of.
#pragma once

#include <string>

#include "profile/model.h"

namespace heapprofd {

// "libc.so.6+0x1234"; "[anonymous]" stands for a mapping of no file, "[unknown]" for an
// address in no mapping. As the program has the file's name: not yet fit to be shown.
std::string ModuleOffset(const TargetProfile& profile, const Frame& frame);

}  // namespace heapprofd
