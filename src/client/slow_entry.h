// How a hook hands its caller's registers to the slow path.
//
// HPD_SLOW_ENTRY(name, target, count): `name` goes on to `target` with the address of the
// return address and the frame pointer as further arguments behind the `count` (1 to 4)
// that the hook has itself. What `target` finds at that address and in the frame pointer
// is what the hook's caller looks like after the call (client/recorder.h).
//
// HPD_THROWING_ENTRY(name, target, personality): the same for hooks with three arguments
// that an exception may leave (operator new). Its frame has a personality routine: the
// C++ runtime calls that when it removes the frame. No landing pad and nothing of the
// runtime is needed for it.
#pragma once

// A hidden function in assembly, `name`, is what stands between these two.
#define HPD_ASM_FUNCTION(name)        \
  ".pushsection .text\n"              \
  ".balign 4\n"                       \
  ".hidden " #name                    \
  "\n"                                \
  ".globl " #name                     \
  "\n"                                \
  ".type " #name ", STT_FUNC\n" #name \
  ":\n"                               \
  ".cfi_startproc\n"
#define HPD_ASM_FUNCTION_END(name) \
  ".cfi_endproc\n"                 \
  ".size " #name ", .-" #name      \
  "\n"                             \
  ".popsection\n"

#if defined(__x86_64__)
#include "client/x86_64/slow_entry.h"  // IWYU pragma: export
#elif defined(__aarch64__)
#include "client/aarch64/slow_entry.h"  // IWYU pragma: export
#endif
