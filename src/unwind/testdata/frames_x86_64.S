/* Functions whose unwind information has known answers, for module_test.cc. Addresses are from `frames`, the image's entry.
   With USE_DEBUG_FRAME it is in .debug_frame, otherwise in .eh_frame. */
#ifdef USE_DEBUG_FRAME
        .cfi_sections .debug_frame
#endif
        .section .note.GNU-stack, "", @progbits
        .text
        .globl  frames
frames:
begin:
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
/* 0x208: as C libraries end a program with what main has returned. */
        .org    0x208
        mov     %eax, %edi
        call    end
/* 0x210, 0x218: the same of a thread, of either kind. */
        .org    0x210
        mov     %rax, %rdi
        call    end
        .org    0x218
        movslq  %eax, %rdi
        call    end
/* 0x220: something else is called. */
        .org    0x220
        mov     %eax, %edi
        call    begin
/* 0x230: as musl returns from signal handlers. */
        .org    0x230
        mov     $15, %rax
        syscall
/* 0x240: ends the program. */
        .org    0x240
        .globl  exit
        .type   exit, @function
exit:
end:
        hlt
/* 0x300: the last function. */
        .org    0x300
        .cfi_startproc
        ret
        .cfi_endproc
