// Where the borrowed thread starts, with hpd_setup_stack and with all signals blocked. It runs
// HpdSetup; the engine takes it from the loop behind that, HpdSetupWait to HpdSetupEnd. If
// it is not taken, it leaves with all registers as in hpd_attach_state.resume, which is at
// the start of that block. The stub in attach/ARCHITECTURE does the same and says why in
// this way.
#pragma once

#include "client/image/attach_image.h"

#if defined(__x86_64__)
#include "client/image/x86_64/setup_entry.h"  // IWYU pragma: export
#elif defined(__aarch64__)
#include "client/image/aarch64/setup_entry.h"  // IWYU pragma: export
#endif
