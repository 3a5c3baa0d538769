/* Functions whose unwind information has known answers, for module_test.cc. Addresses are from `frames`, the image's entry.
   With USE_DEBUG_FRAME it is in .debug_frame, otherwise in .eh_frame. */
#ifdef USE_DEBUG_FRAME
        .cfi_sections .debug_frame
#endif
        .section .note.GNU-stack, "", @progbits
        .text
        .globl  frames
frames:
/* 0: saves rbp, then makes room. */
        .cfi_startproc
        push    %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset %rbp, -16
        sub     $32, %rsp
        .cfi_def_cfa_offset 48
        ret
        .cfi_endproc
/* 0x100: no rule can say it. A signal frame, but not the kernel's; clang marks these in .eh_frame only. */
        .org    0x100
        .cfi_startproc
#ifdef USE_DEBUG_FRAME
        .cfi_def_cfa %rbx, 64
#else
        .cfi_signal_frame
        .cfi_def_cfa_offset 64
#endif
        ret
        .cfi_endproc
/* 0x200: without unwind information. */
        .org    0x200
        ret
/* 0x300: the last function. */
        .org    0x300
        .cfi_startproc
        ret
        .cfi_endproc
