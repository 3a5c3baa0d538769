// Allocates on another stack whose outermost unwind information lies, as that of Go's
// calls of C does: it takes a word for the return address that is an address of data, of
// nothing, or none at all. Usage: odd_ends COUNT, and each letter on standard input has
// it do so again
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

// The return address is above the old stack pointer, not where this says it is.
void call_on_stack(void (*function)(void), void* top, uintptr_t word);
__asm__(
    ".text\n"
    ".type call_on_stack, STT_FUNC\n"
    "call_on_stack:\n"
    "  .cfi_startproc\n"
#if defined(__aarch64__)
    "  stp x29, x30, [sp, #-32]!\n"
    "  str x19, [sp, #16]\n"
    "  mov x19, sp\n"
    "  .cfi_def_cfa sp, 16\n"
    "  .cfi_offset x30, -8\n"
    "  stp xzr, x2, [x1, #-16]!\n"
    "  mov sp, x1\n"
    "  blr x0\n"
    "  mov sp, x19\n"
    "  ldr x19, [sp, #16]\n"
    "  ldp x29, x30, [sp], #32\n"
    "  ret\n"
#else
    "  push %rbx\n"
    "  mov %rsp, %rbx\n"
    "  mov %rdx, -16(%rsi)\n"
    "  lea -16(%rsi), %rsp\n"
    "  call *%rdi\n"
    "  mov %rbx, %rsp\n"
    "  pop %rbx\n"
    "  ret\n"
#endif
    "  .cfi_endproc\n"
    ".size call_on_stack, .-call_on_stack\n");

static _Alignas(16) char other_stack[1 << 16];
static char data[64];

__attribute__((noinline)) void allocates(void) {
  void* volatile block = malloc(100);
  free(block);
}

__attribute__((noinline)) void on_other_stack(void) {
  allocates();
  __asm__ volatile("" ::: "memory");
}

int main(int argc, char** argv) {
  const uintptr_t words[] = {0x5ffffffff, (uintptr_t)&argc, (uintptr_t)data,
                             UINTPTR_MAX - 5, 1ull << 47};
  const long count = argc > 1 ? atol(argv[1]) : 1000;
  do {
    for (long i = 0; i < count; ++i)
      call_on_stack(on_other_stack, other_stack + sizeof(other_stack), words[i % 5]);
    puts("ready");
    fflush(stdout);
  } while (getchar() != EOF);
  return 0;
}
