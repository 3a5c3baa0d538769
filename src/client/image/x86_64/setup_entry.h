// x86-64: client/image/setup_entry.h. In the loop as many calls have returned as were made: a
// processor with shadow stacks counts them.
#pragma once

asm(".pushsection .text\n.hidden HpdSetupEntry\n.globl HpdSetupEntry\n"
    "HpdSetupEntry:\n"
    "cld\n"
    "call HpdSetup\n"
    "rdtsc\n"
    "shl $32, %rdx\n"
    "or %rdx, %rax\n"
    "mov 248+hpd_attach_state(%rip), %rcx\n"  // request.hold_ticks
    "add %rax, %rcx\n"
    "1: pause\n"
    "rdtsc\n"
    "shl $32, %rdx\n"
    "or %rdx, %rax\n"
    "cmp %rcx, %rax\n"
    "jb 1b\n"
    "lea hpd_attach_state(%rip), %rsi\n"
    "mov 128(%rsi), %rdi\n"
    "sub $(128 + 18 * 8), %rdi\n"
    "mov %rdi, %rsp\n"
    "mov $18, %ecx\n"
    "rep movsq\n"
    "popfq\n"
    "mov $14, %eax\n"  // rt_sigprocmask(SIG_SETMASK, signal_mask, nullptr, 8)
    "mov $2, %edi\n"
    "lea 144+hpd_attach_state(%rip), %rsi\n"
    "mov $0, %edx\n"
    "mov $8, %r10d\n"
    "syscall\n"
    "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbp\npop %rbx\npop %r11\n"
    "pop %r10\npop %r9\npop %r8\npop %rax\npop %rcx\npop %rdx\npop %rsi\n"
    "pop %rdi\npop %rsp\n"
    "jmp *136+hpd_attach_state(%rip)\n"
    "HpdSetupEnd:\n.hidden HpdSetupEnd\n.globl HpdSetupEnd\n"
    ".popsection\n");
static_assert(sizeof(heapprofd::ResumeRegisters) == 18 * sizeof(uint64_t));
static_assert(offsetof(heapprofd::AttachState, resume) == 0);
static_assert(offsetof(heapprofd::ResumeRegisters, sp) == 128);
static_assert(offsetof(heapprofd::ResumeRegisters, ip) == 136);
static_assert(offsetof(heapprofd::AttachState, request.signal_mask) == 144);
static_assert(offsetof(heapprofd::AttachState, request.hold_ticks) == 248);
