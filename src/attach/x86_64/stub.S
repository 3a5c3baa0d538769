# The first code of ours that a borrowed thread runs, from unused bytes at the end of a code segment: maps the memory for
# the client's image and waits to be put back where it was. All signals are blocked meanwhile. When nobody comes, it goes
# back by itself, with every register and the signals as they were: a tracer that is killed leaves a healthy process. The
# parameters behind it are filled in by code_cave.cc.
        .section .rodata
        .globl hpd_stub, hpd_stub_parameters, hpd_stub_end
        .hidden hpd_stub, hpd_stub_parameters, hpd_stub_end
        .balign 16
hpd_stub:
        cld
        mov     $9, %eax                # mmap
        mov     base_(%rip), %rdi
        mov     total_size_(%rip), %rsi
        mov     $3, %edx                # PROT_READ | PROT_WRITE
        mov     $0x104022, %r10d        # MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE
        mov     $-1, %r8
        xor     %r9d, %r9d
        syscall
        cmp     base_(%rip), %rax
        jne     1f
        mov     $9, %eax                # executable and never writable
        mov     base_(%rip), %rdi
        mov     code_size_(%rip), %rsi
        mov     $5, %edx                # PROT_READ | PROT_EXEC
        mov     $0x32, %r10d            # MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED
        mov     $-1, %r8
        xor     %r9d, %r9d
        syscall
1:      mov     hold_ticks_(%rip), %rcx # the tracer takes the thread from this loop; if there is none any more the time passes
        rdtsc
        shl     $32, %rdx
        or      %rdx, %rax
        add     %rax, %rcx
2:      pause
        rdtsc
        shl     $32, %rdx
        or      %rdx, %rax
        cmp     %rcx, %rax
        jb      2b
# The registers are copied below the thread's red zone and taken from there. Until the signals are unblocked nobody sees that;
# from then on a handler finds a stack with all of them on it (a garbage collector looks for pointers there), and the flags
# as they were, which the system call preserves.
3:      lea     flags_(%rip), %rsi
        mov     sp_(%rip), %rdi
        sub     $(128 + 18 * 8), %rdi
        mov     %rdi, %rsp
        mov     $18, %ecx
        rep movsq
        popfq
        mov     $14, %eax               # rt_sigprocmask
        mov     $2, %edi                # SIG_SETMASK
        lea     signal_mask_(%rip), %rsi
        mov     $0, %edx
        mov     $8, %r10d
        syscall
        pop     %r15
        pop     %r14
        pop     %r13
        pop     %r12
        pop     %rbp
        pop     %rbx
        pop     %r11
        pop     %r10
        pop     %r9
        pop     %r8
        pop     %rax
        pop     %rcx
        pop     %rdx
        pop     %rsi
        pop     %rdi
        pop     %rsp
        jmp     *ip_(%rip)
        .balign 8
hpd_stub_parameters:
base_:          .quad 0
total_size_:    .quad 0
code_size_:     .quad 0
hold_ticks_:    .quad 0
signal_mask_:   .quad 0
flags_:         .quad 0
r15_:           .quad 0
r14_:           .quad 0
r13_:           .quad 0
r12_:           .quad 0
bp_:            .quad 0
bx_:            .quad 0
r11_:           .quad 0
r10_:           .quad 0
r9_:            .quad 0
r8_:            .quad 0
ax_:            .quad 0
cx_:            .quad 0
dx_:            .quad 0
si_:            .quad 0
di_:            .quad 0
sp_:            .quad 0
ip_:            .quad 0
hpd_stub_end:
        .section .note.GNU-stack,"",@progbits
