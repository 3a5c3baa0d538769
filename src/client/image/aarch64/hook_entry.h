// aarch64: client/image/hook_entry.h. The return address is in x30, so an entry makes a
// frame and puts it right below its caller's.
#pragma once

#define HPD_ENTRY_WITH(name, target, stack_register, bp_register, allocator) \
  HPD_IMAGE_FUNCTION(name,                                                   \
                     "stp x29, x30, [sp, #-16]!\n"                           \
                     "add " stack_register                                   \
                     ", sp, #8\n"                                            \
                     "mov " bp_register                                      \
                     ", x29\n"                                               \
                     "mov x29, sp\n" allocator "bl " #target                 \
                     "\n"                                                    \
                     "ldp x29, x30, [sp], #16\n"                             \
                     "ret\n")

#define HPD_ENTRY_1(name, target, number) \
  HPD_ENTRY_WITH(name, target, "x1", "x2", "mov w3, #" #number "\n")
#define HPD_ENTRY_2(name, target, number) \
  HPD_ENTRY_WITH(name, target, "x2", "x3", "mov w4, #" #number "\n")
#define HPD_ENTRY_3(name, target, number) \
  HPD_ENTRY_WITH(name, target, "x3", "x4", "mov w5, #" #number "\n")
#define HPD_ENTRY_4(name, target) HPD_ENTRY_WITH(name, target, "x4", "x5", "")

// What the assembler needs to know of AttachState (attach_hooks.cc makes sure of it).
#define HPD_ORIGINALS_AT 440

#define HPD_ORIGINAL_IN_ASM(hook, number)                                                \
  "hpd_attach_state + " HPD_DIGITS(HPD_ORIGINALS_AT) " + 8 * (40 * " #number " + " #hook \
                                                     ")"

#define HPD_NEW_ENTRY(name, target, hook, number) \
  HPD_IMAGE_FUNCTION(                                                                \
      name,                                                                          \
      "stp x29, x30, [sp, #-16]!\n"                                                  \
      "add x3, sp, #8\n"                                                             \
      "mov x4, x29\n"                                                                \
      "mov x29, sp\n"                                                                \
      "mov w5, #" #number                                                            \
      "\n"                                                                           \
      "stp x0, x1, [sp, #-16]!\n"                                                    \
      "bl " #target                                                                  \
      "\n"                                                                           \
      "cbz x0, 1f\n"                                                                 \
      "add sp, sp, #16\n"                                                            \
      "ldp x29, x30, [sp], #16\n"                                                    \
      "ret\n"                                                                        \
      "1: ldp x0, x1, [sp], #16\n"                                                   \
      "ldp x29, x30, [sp], #16\n"                                                    \
      "adrp x16, " HPD_ORIGINAL_IN_ASM(hook, number)                                 \
      "\n"                                                                           \
      "ldr x16, [x16, #:lo12:" HPD_ORIGINAL_IN_ASM(hook, number) "]\n"               \
      "br x16\n")
