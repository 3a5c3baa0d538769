// aarch64: client/slow_entry.h. The return address is in x30, so the entry makes a frame
// and puts it right below its caller's.
#pragma once

// `stack_register` and `bp_register`: the two arguments behind the hook's own, x0 on.
#define HPD_ENTRY_WITH(name, target, stack_register, bp_register, personality) \
  asm(HPD_ASM_FUNCTION(name) personality                                       \
      "stp x29, x30, [sp, #-16]!\n"                                            \
      ".cfi_def_cfa_offset 16\n"                                               \
      ".cfi_offset x29, -16\n"                                                 \
      ".cfi_offset x30, -8\n"                                                  \
      "add " stack_register                                                    \
      ", sp, #8\n"                                                             \
      "mov " bp_register                                                       \
      ", x29\n"                                                                \
      "mov x29, sp\n"                                                          \
      "bl " #target                                                            \
      "\n"                                                                     \
      "ldp x29, x30, [sp], #16\n"                                              \
      ".cfi_restore x29\n"                                                     \
      ".cfi_restore x30\n"                                                     \
      ".cfi_def_cfa_offset 0\n"                                                \
      "ret\n" HPD_ASM_FUNCTION_END(name))

#define HPD_ENTRY_1(name, target) HPD_ENTRY_WITH(name, target, "x1", "x2", "")
#define HPD_ENTRY_2(name, target) HPD_ENTRY_WITH(name, target, "x2", "x3", "")
#define HPD_ENTRY_3(name, target) HPD_ENTRY_WITH(name, target, "x3", "x4", "")
#define HPD_ENTRY_4(name, target) HPD_ENTRY_WITH(name, target, "x4", "x5", "")
#define HPD_SLOW_ENTRY(name, target, count) HPD_ENTRY_##count(name, target)

#define HPD_THROWING_ENTRY(name, target, personality) \
  HPD_ENTRY_WITH(name, target, "x3", "x4", ".cfi_personality 0x1b, " #personality "\n")
