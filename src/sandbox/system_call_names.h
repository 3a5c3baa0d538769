// Which names system calls have: the part of system_calls.cc that differs between
// architectures (docs/design/architectures.md).
#pragma once

#if defined(__x86_64__)
#include "sandbox/x86_64/system_call_names.h"  // IWYU pragma: export
#elif defined(__aarch64__)
#include "sandbox/aarch64/system_call_names.h"  // IWYU pragma: export
#endif
