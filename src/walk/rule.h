// The unwind rule: how to get from one frame to its caller, in 26 bits.
//
// The engine derives rules from CFI (src/unwind) and publishes them in shared memory
// (rule_table.h); the client walks its own stack by them (step.h). Freestanding: this
// folder runs inside the target.
//
// Only three registers are followed: pc, sp, and bp, which is the frame pointer: every
// CFA of compiled code is made from one of the latter two at call sites. Where return
// address and frame pointer are saved is a matter of the architecture, each of which has
// a folder with a Rule (rule.h) and a Step (step.h) of its own. All of them are compiled
// everywhere, for their tests; below stands which one is meant without a name.
//
// Key: the address a rule is looked up by, and what a recorded stack consists of. For a
// frame that is in a call it is the return address; for a frame that was interrupted by a
// signal it is pc+1. In both cases key-1 lies in the instruction that was executing.
#pragma once

#if defined(__x86_64__)
#include "walk/x86_64/rule.h"

namespace heapprofd {
using namespace x86_64;  // NOLINT(google-build-using-namespace)
}
#elif defined(__aarch64__)
#include "walk/aarch64/rule.h"

namespace heapprofd {
using namespace aarch64;  // NOLINT(google-build-using-namespace)
}
#else
#error \
    "cannot walk stacks of this architecture: docs/design/architectures.md says what is needed"
#endif
