// A heap dump as folded stacks: "main;Parse;Read 4096", one line per stack, outermost
// function first, without the allocation function at its end. flamegraph.pl, inferno,
// speedscope and the Perfetto UI read it.
#pragma once

#include <string>

#include "export/view.h"
#include "profile/model.h"

namespace heapprofd {

// Lines in the order of their text; stacks with the same names are one line, stacks with
// the value 0 none.
std::string EncodeFolded(const TargetProfile& profile, const HeapDump& dump, View view);

}  // namespace heapprofd
