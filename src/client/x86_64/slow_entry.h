// x86-64: client/slow_entry.h. The return address is where rsp points to when a function
// is called, so a jump is enough.
#pragma once

#define HPD_ENTRY_WITH(name, target, stack_register, bp_register) \
  asm(HPD_ASM_FUNCTION(name) "mov %rsp, %" #stack_register        \
                             "\n"                                 \
                             "mov %rbp, %" #bp_register           \
                             "\n"                                 \
                             "jmp " #target "\n" HPD_ASM_FUNCTION_END(name))

// The argument registers rdi, rsi, rdx, rcx, r8, r9: the two behind the hook's own.
#define HPD_ENTRY_1(name, target) HPD_ENTRY_WITH(name, target, rsi, rdx)
#define HPD_ENTRY_2(name, target) HPD_ENTRY_WITH(name, target, rdx, rcx)
#define HPD_ENTRY_3(name, target) HPD_ENTRY_WITH(name, target, rcx, r8)
#define HPD_ENTRY_4(name, target) HPD_ENTRY_WITH(name, target, r8, r9)
#define HPD_SLOW_ENTRY(name, target, count) HPD_ENTRY_##count(name, target)

#define HPD_THROWING_ENTRY(name, target, personality)               \
  asm(HPD_ASM_FUNCTION(name) ".cfi_personality 0x1b, " #personality \
                             "\n"                                   \
                             "mov %rsp, %rcx\n"                     \
                             "mov %rbp, %r8\n"                      \
                             "sub $8, %rsp\n"                       \
                             ".cfi_adjust_cfa_offset 8\n"           \
                             "call " #target                        \
                             "\n"                                   \
                             "add $8, %rsp\n"                       \
                             ".cfi_adjust_cfa_offset -8\n"          \
                             "ret\n" HPD_ASM_FUNCTION_END(name))
