/* As frames_x86_64.S, and what that architecture has not. */
#ifdef USE_DEBUG_FRAME
        .cfi_sections .debug_frame
#endif
        .section .note.GNU-stack, "", @progbits
        .text
        .globl  frames
frames:
begin:
/* 0: signs its return address, saves x29 and x30, then makes room. */
        .cfi_startproc
        hint    #25     // paciasp
        .cfi_negate_ra_state
        stp     x29, x30, [sp, #-32]!
        .cfi_def_cfa_offset 32
        .cfi_offset x29, -32
        .cfi_offset x30, -24
        mov     x29, sp
        .cfi_def_cfa x29, 32
        sub     sp, sp, #64
        ret
        .cfi_endproc
/* 0x80: saves x30 alone. */
        .org    0x80
        .cfi_startproc
        str     x30, [sp, #-16]!
        .cfi_def_cfa_offset 16
        .cfi_offset x30, -16
        ret
        .cfi_endproc
/* 0x100: no rule can say it. A signal frame, but not the kernel's; clang marks these in .eh_frame only. */
        .org    0x100
        .cfi_startproc
#ifdef USE_DEBUG_FRAME
        .cfi_def_cfa x19, 64
#else
        .cfi_signal_frame
        .cfi_def_cfa_offset 64
#endif
        ret
        .cfi_endproc
/* 0x200: without unwind information. */
        .org    0x200
        ret
/* 0x204: as the vdso returns from signal handlers, with the instruction before it that makes a place for its callers. */
        mov     x8, #139
        svc     #0
/* 0x210: as C libraries end a program, or a thread, with what its first function has returned. */
        .org    0x210
        bl      end
/* 0x218: the same of C's own threads. */
        .org    0x218
        sxtw    x0, w0
        bl      end
/* 0x220: something else is called. */
        .org    0x220
        bl      begin
/* 0x240: ends the program. */
        .org    0x240
        .globl  exit
        .type   exit, @function
exit:
end:
        brk     #0
/* 0x300: the last function. */
        .org    0x300
        .cfi_startproc
        ret
        .cfi_endproc
