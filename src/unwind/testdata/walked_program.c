// Allocates in a chain of frames of many forms, as the test tells it ("signal": in a
// handler), and prints what the C library's own unwinder says of the stack at that
// moment: the block, and the return addresses. First, once, where its objects are.
#define _GNU_SOURCE
#include <alloca.h>
#include <execinfo.h>
#include <link.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kSize = 12345, kMaxFrames = 64 };

static volatile int g_one = 1;
static void* g_keys[kMaxFrames];
static int g_count;

#define NOINLINE __attribute__((noinline, noclone))

NOINLINE static void* Inner(void) {
  g_count = backtrace(g_keys, kMaxFrames);
  void* block = malloc(kSize);
  g_one = 1;
  return block;
}

NOINLINE static void* LargeFrame(void) {
  volatile char room[3000];
  room[g_one] = 1;
  void* block = Inner();
  g_one = room[g_one];
  return block;
}

NOINLINE static void* MovingFrame(int size) {
  volatile char* moving = alloca((size_t)size);
  moving[size - 1] = 1;
  void* block = LargeFrame();
  g_one = moving[size - 1];
  return block;
}

// Keeps many values across the call, so it saves many registers.
NOINLINE static void* ManyRegisters(int a, int b, int c, int d, int e, int f, int g) {
  const int ab = a * b + g_one;
  const int cd = c * d + g_one;
  const int ef = e * f + g_one;
  const int ag = a * g + g_one;
  void* block = MovingFrame(100 + ab);
  g_one = (ab + cd + ef + ag + a + b + c + d + e + f + g) != 0;
  return block;
}

NOINLINE static void* Recursive(int depth) {
  void* block = depth == 0 ? ManyRegisters(1, 2, 3, 4, 5, 6, 7) : Recursive(depth - 1);
  g_one = 1;
  return block;
}

static sigjmp_buf g_after_fault;
static void* g_block;
static int* volatile g_nowhere;

static void OnFault(int signal) {
  (void)signal;
  g_block = Recursive(1);
  siglongjmp(g_after_fault, 1);
}

NOINLINE static int Leaf(const int* from) {
  return *from + g_one;
}

// Allocates in a handler that has interrupted a leaf function.
NOINLINE static void* Interrupted(void) {
  if (sigsetjmp(g_after_fault, 1) == 0)
    g_one = Leaf(g_nowhere) + 1;
  return g_block;
}

static int PrintObject(struct dl_phdr_info* info, size_t size, void* path) {
  (void)size;
  const char* name = info->dlpi_name[0] != 0 ? info->dlpi_name : path;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)* segment = &info->dlpi_phdr[i];
    if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X) != 0)
      printf("%llx %llx %llx %s\n", (unsigned long long)info->dlpi_addr,
             (unsigned long long)(info->dlpi_addr + segment->p_vaddr),
             (unsigned long long)(info->dlpi_addr + segment->p_vaddr + segment->p_memsz),
             name);
  }
  return 0;
}

int main(int argc, char** argv) {
  (void)argc;
  backtrace(g_keys, kMaxFrames);  // loads what it needs
  signal(SIGSEGV, &OnFault);
  char command[8];
  int is_first = 1;
  while (fgets(command, sizeof(command), stdin) != NULL) {
    if (is_first)
      dl_iterate_phdr(&PrintObject, argv[0]);
    is_first = 0;
    void* block = command[0] == 's' ? Interrupted() : Recursive(3);
    printf("frames %llx", (unsigned long long)(uintptr_t)block);
    for (int i = 0; i < g_count; ++i)
      printf(" %llx", (unsigned long long)(uintptr_t)g_keys[i]);
    printf("\n");
    fflush(stdout);
    free(block);
  }
  return 0;
}
