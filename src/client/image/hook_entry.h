// How hooks of the attached client get at their caller's registers before the compiler can
// move them.
//
// HPD_ENTRY_N(name, target, number): `name`, of a hook with N arguments, goes on to
// `target` with further ones: the address of the return address and the frame pointer, as
// the caller has them after the call (client/recorder.h), and the number of the allocator.
// HPD_ENTRY_4 has no register left for that.
//
// HPD_NEW_ENTRY(name, target, hook, number): as HPD_ENTRY_3, and jumps to the operator
// itself, originals[number][hook] of AttachState, when `target` returns nullptr.
#pragma once

#define HPD_IMAGE_FUNCTION(name, ...)                                         \
  asm(".pushsection .text\n.hidden " #name "\n.globl " #name "\n.type " #name \
      ", STT_FUNC\n" #name ":\n" __VA_ARGS__ ".size " #name ", .-" #name      \
      "\n.popsection\n")

// A number that is defined, as the assembler reads it.
#define HPD_DIGITS(number) HPD_DIGITS_OF(number)
#define HPD_DIGITS_OF(number) #number

#if defined(__x86_64__)
#include "client/image/x86_64/hook_entry.h"  // IWYU pragma: export
#elif defined(__aarch64__)
#include "client/image/aarch64/hook_entry.h"  // IWYU pragma: export
#endif
