// The first code of ours that a borrowed thread runs: as attach/x86_64/stub.S, which says
// what for. The parameters behind it are filled in by code_cave.cc.
#include "rt/aarch64/go_back.h"

asm(".pushsection .rodata\n"
    ".globl hpd_stub, hpd_stub_parameters, hpd_stub_end\n"
    ".hidden hpd_stub, hpd_stub_parameters, hpd_stub_end\n"
    ".balign 16\n"
    "hpd_stub:\n"
    "ldr x19, hpd_stub_sp\n"         // memory to go back by: below the stack,
    "ldr x0, hpd_stub_parameters\n"  // unless there is some of ours
    "ldr x1, hpd_stub_parameters + 8\n"
    "mov x2, #3\n"             // PROT_READ | PROT_WRITE
    "mov w3, #0x4022\n"        // MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
    "movk w3, #16, lsl #16\n"  // MAP_FIXED_NOREPLACE
    "mov x4, #-1\n"
    "mov x5, #0\n"
    "mov x8, #222\n"  // mmap
    "svc #0\n"
    "ldr x9, hpd_stub_parameters\n"
    "cmp x0, x9\n"
    "b.ne hpd_stub_wait\n"
    "ldr x10, hpd_stub_parameters + 8\n"
    "add x19, x9, x10\n"
    "ldr x1, hpd_stub_parameters + 16\n"  // executable and never writable
    "mov x2, #5\n"                        // PROT_READ | PROT_EXEC
    "mov x3, #0x32\n"                     // MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED
    "mov x4, #-1\n"
    "mov x5, #0\n"
    "svc #0\n"
    "hpd_stub_wait:\n"  // the tracer takes the thread from this loop
    "ldr x9, hpd_stub_parameters + 24\n"
    "mrs x10, cntvct_el0\n"
    "add x9, x9, x10\n"
    "2: yield\n"
    "mrs x10, cntvct_el0\n"
    "cmp x10, x9\n"
    "b.lo 2b\n"
    "mov x9, x19\n"
    "adr x10, hpd_stub_resume\n"
    "ldr x11, hpd_stub_parameters + 32\n" HPD_GO_BACK
    ".balign 8\n"
    "hpd_stub_parameters: .skip 5 * 8\n"  // StubRequest: base, sizes, hold_ticks, mask
    "hpd_stub_resume: .skip 31 * 8\n"     // ResumeRegisters
    "hpd_stub_sp: .skip 4 * 8\n"
    "hpd_stub_end:\n"
    ".popsection\n");
