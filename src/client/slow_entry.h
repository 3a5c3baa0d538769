// How a hook hands its caller's registers to the slow path.
#pragma once

// HPD_SLOW_ENTRY(name, target, stack register, frame register): `name` jumps to `target`
// with the address of the return address and rbp in the first two argument registers that
// the hook does not use itself.
#define HPD_SLOW_ENTRY(name, target, stack_register, bp_register) \
  asm(".pushsection .text\n"                                      \
      ".hidden " #name                                            \
      "\n"                                                        \
      ".globl " #name                                             \
      "\n"                                                        \
      ".type " #name ", @function\n" #name                        \
      ":\n"                                                       \
      ".cfi_startproc\n"                                          \
      "mov %rsp, %" #stack_register                               \
      "\n"                                                        \
      "mov %rbp, %" #bp_register                                  \
      "\n"                                                        \
      "jmp " #target                                              \
      "\n"                                                        \
      ".cfi_endproc\n"                                            \
      ".size " #name ", .-" #name                                 \
      "\n"                                                        \
      ".popsection\n")
