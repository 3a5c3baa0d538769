// aarch64: client/image/setup_entry.h.
#pragma once

#include "rt/aarch64/go_back.h"

asm(".pushsection .text\n.hidden HpdSetupEntry\n.globl HpdSetupEntry\n"
    "HpdSetupEntry:\n"
    "bl HpdSetup\n"
    "adrp x10, hpd_attach_state\n"
    "add x10, x10, #:lo12:hpd_attach_state\n"
    "ldr x9, [x10, #384]\n"  // request.hold_ticks
    "mrs x11, cntvct_el0\n"
    "add x9, x9, x11\n"
    "2: yield\n"
    "mrs x11, cntvct_el0\n"
    "cmp x11, x9\n"
    "b.lo 2b\n"
    "adrp x9, hpd_setup_stack + 65536\n"
    "add x9, x9, #:lo12:hpd_setup_stack + 65536\n"
    "ldr x11, [x10, #280]\n"  // request.signal_mask
    HPD_GO_BACK
    "HpdSetupEnd:\n.hidden HpdSetupEnd\n.globl HpdSetupEnd\n"
    ".popsection\n");
static_assert(sizeof(heapprofd::ResumeRegisters) == 35 * sizeof(uint64_t));
static_assert(offsetof(heapprofd::AttachState, resume) == 0);
static_assert(offsetof(heapprofd::AttachState, request.signal_mask) == 280);
static_assert(offsetof(heapprofd::AttachState, request.hold_ticks) == 384);
