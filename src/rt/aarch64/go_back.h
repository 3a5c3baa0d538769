// aarch64: how a thread that was led into our code goes on where it was, with every
// register and the signals as they were, without anybody's help. No instruction loads the
// program counter without spending a register, so it is done as a signal handler ends: a
// frame as the kernel makes it is written, and rt_sigreturn(2) takes all of it at once.
//
// HPD_GO_BACK: code for x9, one past the end of 1152 bytes that nobody else uses, which
// become its stack; x10, the address of ResumeRegisters; x11, the signal mask.
#pragma once

// struct rt_sigframe: siginfo at 0; stack_t at 144, signal mask at 168, registers from
// 312 on, at 592 an fpsimd_context and the end of all contexts. A stack for signals of no
// bytes is too small: the kernel refuses it without a word (restore_altstack), and the
// thread keeps the one it has. Asking for that one would be a system call which a filter
// may punish, as the profiler that suspended filters is gone by then. Vector registers are those
// that the thread has now, as our code does not use them (what SVE has beyond 128 bits is
// lost by each system call).
#define HPD_GO_BACK                                        \
  "sub x12, x9, #1152\n"                                   \
  "and sp, x12, #0xfffffffffffffff0\n"                     \
  "mov x9, sp\n"                                           \
  "add x12, x9, #312\n"                                    \
  "mov x13, #34\n"                                         \
  "1: ldr x14, [x10], #8\n"                                \
  "str x14, [x12], #8\n"                                   \
  "subs x13, x13, #1\n"                                    \
  "b.ne 1b\n"                                              \
  "str x11, [x9, #168]\n"                                  \
  "add x12, x9, #592\n"                                    \
  "movz w13, #0x8001\n" /* FPSIMD_MAGIC */                 \
  "movk w13, #0x4650, lsl #16\n"                           \
  "mov w14, #528\n" /* its size */                         \
  "stp w13, w14, [x12]\n"                                  \
  "mrs x13, fpsr\n"                                        \
  "mrs x14, fpcr\n"                                        \
  "stp w13, w14, [x12, #8]\n"                              \
  "stp q0, q1, [x12, #16]\nstp q2, q3, [x12, #48]\n"       \
  "stp q4, q5, [x12, #80]\nstp q6, q7, [x12, #112]\n"      \
  "stp q8, q9, [x12, #144]\nstp q10, q11, [x12, #176]\n"   \
  "stp q12, q13, [x12, #208]\nstp q14, q15, [x12, #240]\n" \
  "stp q16, q17, [x12, #272]\nstp q18, q19, [x12, #304]\n" \
  "stp q20, q21, [x12, #336]\nstp q22, q23, [x12, #368]\n" \
  "stp q24, q25, [x12, #400]\nstp q26, q27, [x12, #432]\n" \
  "stp q28, q29, [x12, #464]\nstp q30, q31, [x12, #496]\n" \
  "add x12, x12, #528\n"                                   \
  "stp xzr, xzr, [x12]\n"                                  \
  "stp xzr, xzr, [x9, #144]\n"                             \
  "str xzr, [x9, #160]\n"                                  \
  "mov x8, #139\n"                                         \
  "svc #0\n"
