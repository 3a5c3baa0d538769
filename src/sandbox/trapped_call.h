// A system call that the filter has turned into SIGSYS, as the handler finds it
// (docs/design/architectures.md).
#pragma once

#if defined(__x86_64__)
#include "sandbox/x86_64/trapped_call.h"  // IWYU pragma: export
#elif defined(__aarch64__)
#include "sandbox/aarch64/trapped_call.h"  // IWYU pragma: export
#endif
