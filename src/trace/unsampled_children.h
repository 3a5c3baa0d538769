// What the forked children of a process have counted that have no profile of their own: a
// message that Perfetto's traces do not have. Not part of a dump, for children may go on
// when the process has ended and its last dump is written.
#pragma once

#include <string>

#include "profile/model.h"

namespace heapprofd {

std::string UnsampledChildrenMessage(const TargetProfile& profile);

}  // namespace heapprofd
