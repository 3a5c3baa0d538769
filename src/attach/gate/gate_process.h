// The process that holds all execs of the machine.
#pragma once

#include "base/scoped_fd.h"

namespace heapprofd {

// Tells `control` an errno, 0 when all is well, and then serves until its other end is
// closed. The process must not be needed for anything else: it may end in here.
void RunGate(ScopedFd control);

}  // namespace heapprofd
