// Applying a rule: one step from a frame to its caller. The same code walks the live
// stack in the client and copied stacks in the engine; only the memory behind it differs.
//
// A Memory has `bool Read(uint64_t address, uint64_t* value) const`, which returns false
// for any address outside the bounds it knows to be readable: a walk can stop early, it
// can never fault.
#pragma once

#include "walk/rule.h"
#include "walk/step_result.h"
#if defined(__x86_64__)
#include "walk/x86_64/step.h"
#elif defined(__aarch64__)
#include "walk/aarch64/step.h"
#endif
