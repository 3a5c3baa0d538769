// The figures of a dump as whole bytes and allocations, which is what traces hold: so all
// that is said of a recording is the same, whether it is made of what the recorder has or
// of the trace.
#pragma once

#include "profile/model.h"

namespace heapprofd {

// Variances stay as they are. Nothing frees more than was allocated, and callsites that
// held nothing at the peak are not in it.
void MakeWhole(HeapDump* dump);

}  // namespace heapprofd
