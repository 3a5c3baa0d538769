// x86-64: client/image/hook_entry.h.
#pragma once

#define HPD_ENTRY_WITH(name, target, stack_register, bp_register, allocator) \
  HPD_IMAGE_FUNCTION(name, "mov %rsp, %" stack_register                      \
                           "\n"                                              \
                           "mov %rbp, %" bp_register "\n" allocator "jmp " #target "\n")

#define HPD_ENTRY_1(name, target, number) \
  HPD_ENTRY_WITH(name, target, "rsi", "rdx", "mov $" #number ", %ecx\n")
#define HPD_ENTRY_2(name, target, number) \
  HPD_ENTRY_WITH(name, target, "rdx", "rcx", "mov $" #number ", %r8d\n")
#define HPD_ENTRY_3(name, target, number) \
  HPD_ENTRY_WITH(name, target, "rcx", "r8", "mov $" #number ", %r9d\n")
#define HPD_ENTRY_4(name, target) HPD_ENTRY_WITH(name, target, "r8", "r9", "")

// What the assembler needs to know of AttachState (attach_hooks.cc makes sure of it).
#define HPD_ORIGINALS_AT 304

#define HPD_NEW_ENTRY(name, target, hook, number)                                 \
  HPD_IMAGE_FUNCTION(                                                             \
      name,                                                                       \
      "mov %rsp, %rcx\n"                                                          \
      "mov %rbp, %r8\n"                                                           \
      "mov $" #number                                                             \
      ", %r9d\n"                                                                  \
      "push %rdi\npush %rsi\nsub $8, %rsp\n"                                      \
      "call " #target                                                             \
      "\n"                                                                        \
      "add $8, %rsp\npop %rsi\npop %rdi\n"                                        \
      "test %rax, %rax\njz 1f\nret\n"                                             \
      "1: jmp *" HPD_DIGITS(HPD_ORIGINALS_AT) " + 8 * (40 * " #number " + " #hook \
                                              ") + hpd_attach_state(%rip)\n")
