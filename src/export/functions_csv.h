// A heap dump as a table of its functions, as CSV: what each has allocated itself and in
// total, recursion counted once.
#pragma once

#include <string>

#include "export/view.h"
#include "profile/model.h"

namespace heapprofd {

// "function,module,place,itself,total", those that hold most first.
std::string EncodeFunctionsCsv(const TargetProfile& profile,
                               const HeapDump& dump,
                               View view);

}  // namespace heapprofd
