// aarch64: how a thread that was led into our code goes on where it was, with every
// register and the signals as they were, without anybody's help. No instruction loads the
// program counter without spending a register, so it is done as a signal handler ends: a
// frame as the kernel makes it is written, and rt_sigreturn(2) takes all of it at once.
//
// Not out of a sleep that goes on by restart_syscall(2): after rt_sigreturn(2) that ends with
// EINTR. It takes no argument, so that x0 is one register to spend.
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
  "ldr x12, [x10, #272]\n" /* sleeps_on */                 \
  "cbnz x12, 3f\n"                                         \
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
  "svc #0\n"                                               \
  "3:\n" HPD_SLEEP_ON

// On the thread's own stack, as from when its signals are let in a handler finds there what
// is in no register (a garbage collector looks for pointers). `ret`, as `br` does not lead
// to every instruction.
#define HPD_SLEEP_ON                                     \
  "ldr x12, [x10, #248]\n"                               \
  "sub sp, x12, #256\n"                                  \
  "mov x12, sp\n"                                        \
  "mov x13, x10\n"                                       \
  "mov x14, #31\n"                                       \
  "4: ldr x15, [x13], #8\n"                              \
  "str x15, [x12], #8\n"                                 \
  "subs x14, x14, #1\n"                                  \
  "b.ne 4b\n"                                            \
  "ldp x14, x15, [x10, #256]\n"                          \
  "str x15, [x12]\n" /* flags */                         \
  "str x14, [sp]\n"  /* in place of x0 */                \
  "str x11, [sp, #-16]!\n"                               \
  "mov x0, #2\n" /* SIG_SETMASK */                       \
  "mov x1, sp\n"                                         \
  "mov x2, #0\n"                                         \
  "mov x3, #8\n"                                         \
  "mov x8, #135\n" /* rt_sigprocmask */                  \
  "svc #0\n"                                             \
  "add sp, sp, #16\n"                                    \
  "ldr x1, [sp, #248]\n"                                 \
  "msr nzcv, x1\n"                                       \
  "ldp x2, x3, [sp, #16]\nldp x4, x5, [sp, #32]\n"       \
  "ldp x6, x7, [sp, #48]\nldp x8, x9, [sp, #64]\n"       \
  "ldp x10, x11, [sp, #80]\nldp x12, x13, [sp, #96]\n"   \
  "ldp x14, x15, [sp, #112]\nldp x16, x17, [sp, #128]\n" \
  "ldp x18, x19, [sp, #144]\nldp x20, x21, [sp, #160]\n" \
  "ldp x22, x23, [sp, #176]\nldp x24, x25, [sp, #192]\n" \
  "ldp x26, x27, [sp, #208]\nldp x28, x29, [sp, #224]\n" \
  "ldr x30, [sp, #240]\n"                                \
  "ldp x0, x1, [sp], #256\n"                             \
  "ret x0\n"
