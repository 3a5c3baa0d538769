// A stopped thread's registers by ptrace: the part of thread/ that differs
// between architectures (docs/design/architectures.md).
#pragma once

#if defined(__x86_64__)
#include "attach/x86_64/registers.h"  // IWYU pragma: export
#elif defined(__aarch64__)
#include "attach/aarch64/registers.h"  // IWYU pragma: export
#endif
