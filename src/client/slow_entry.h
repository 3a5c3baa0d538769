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

// HPD_THROWING_ENTRY: the same for hooks that an exception may leave (operator new). It
// calls `target`, which takes the two registers rcx and r8, and names a personality
// routine for its frame: the C++ runtime calls that when it removes the frame. No landing
// pad and nothing of the runtime is needed for it.
#define HPD_THROWING_ENTRY(name, target, personality) \
  asm(".pushsection .text\n"                          \
      ".hidden " #name                                \
      "\n"                                            \
      ".globl " #name                                 \
      "\n"                                            \
      ".type " #name ", @function\n" #name            \
      ":\n"                                           \
      ".cfi_startproc\n"                              \
      ".cfi_personality 0x1b, " #personality          \
      "\n"                                            \
      "mov %rsp, %rcx\n"                              \
      "mov %rbp, %r8\n"                               \
      "sub $8, %rsp\n"                                \
      ".cfi_adjust_cfa_offset 8\n"                    \
      "call " #target                                 \
      "\n"                                            \
      "add $8, %rsp\n"                                \
      ".cfi_adjust_cfa_offset -8\n"                   \
      "ret\n"                                         \
      ".cfi_endproc\n"                                \
      ".size " #name ", .-" #name                     \
      "\n"                                            \
      ".popsection\n")
