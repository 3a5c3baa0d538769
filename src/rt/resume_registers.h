// Registers of a thread that runs our code and then goes on by itself
// (wire/attached_client.h).
#pragma once

#if defined(__x86_64__)
#include "rt/x86_64/resume_registers.h"  // IWYU pragma: export
#elif defined(__aarch64__)
#include "rt/aarch64/resume_registers.h"  // IWYU pragma: export
#endif
