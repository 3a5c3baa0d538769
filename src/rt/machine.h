// The architecture that this is compiled for (docs/design/architectures.md).
#pragma once

#if defined(__x86_64__)
#include "rt/x86_64/machine.h"  // IWYU pragma: export
#elif defined(__aarch64__)
#include "rt/aarch64/machine.h"  // IWYU pragma: export
#else
#error \
    "cannot build for this architecture: docs/design/architectures.md says what is needed"
#endif
