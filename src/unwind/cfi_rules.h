// From call frame information (.eh_frame, .debug_frame) to a Rule, by libdw.
#pragma once

#include <cstdint>

#include "unwind/module.h"
#include "walk/rule.h"

namespace heapprofd {

// Rule for the frame whose executing instruction is at `rel_pc` (ELF address, inside the
// call instruction). kUnknown: no information covers the address, and its code is none
// that is known (RuleOfCode). kUnwalkable: it needs
// more than a Rule can say.
Rule RuleForAddress(Module& module, uint64_t rel_pc);

// True when unwind information begins exactly at `rel_pc`: as a return address that is no
// place behind a call, but one that makecontext and its like have planted to end a stack.
bool BeginsFunction(Module& module, uint64_t rel_pc);

}  // namespace heapprofd
