// What the kernel leaves on a stack when it has a thread run a signal handler
// (docs/design/architectures.md): kStackPointerAt and kProgramCounterAt are where the frame
// says where the thread was, kFrameMark at kFrameMarkAt is a word that each has, all in bytes from its
// begin; IsSignalFrame looks at the rest.
#pragma once

#if defined(__x86_64__)
#include "attach/x86_64/signal_frame.h"  // IWYU pragma: export
#elif defined(__aarch64__)
#include "attach/aarch64/signal_frame.h"  // IWYU pragma: export
#endif
