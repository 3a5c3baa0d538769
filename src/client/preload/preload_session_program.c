// Allocates in a known chain of calls, as the test tells it. Prints where it was: the
// return addresses of the chain from Inner's caller outward, and the block.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define KEY() ((unsigned long long)(uintptr_t)__builtin_return_address(0))

enum { kSize = 12345 };

static volatile int g_depth;
static unsigned long long g_keys[3];

__attribute__((noinline)) static void* Inner(void) {
  g_keys[0] = KEY();
  void* block = malloc(kSize);
  g_depth = 3;
  return block;
}

__attribute__((noinline)) static void* Middle(void) {
  // Makes frames differ in size, and moves what is saved away from their ends.
  volatile char room[3000];
  room[g_depth] = 1;
  g_keys[1] = KEY();
  void* block = Inner();
  g_depth = 2 + room[0] * 0;
  return block;
}

__attribute__((noinline)) static void* Outer(void) {
  g_keys[2] = KEY();
  void* block = Middle();
  g_depth = 1;
  return block;
}

int main(void) {
  char command[8];
  while (fgets(command, sizeof(command), stdin) != NULL) {
    void* block = Outer();
    printf("%llx %llx %llx %llx %llx\n", (unsigned long long)(uintptr_t)block,
           (unsigned long long)(uintptr_t)&Inner, g_keys[0], g_keys[1], g_keys[2]);
    fflush(stdout);
    free(block);
  }
  return 0;
}
