// 2^N blocks from as many distinct stacks of N + 2 frames, N by the command line. Each
// stack leaves the one before at its outermost frames: nothing of a walk can be taken
// over.
#include <stdlib.h>

static void* volatile g_block;
static void First(unsigned path, int depth);
static void Second(unsigned path, int depth);

static inline __attribute__((always_inline)) void Go(unsigned path, int depth) {
  if (depth == 0)
    g_block = malloc(16);
  else if (path & 1)
    First(path >> 1, depth - 1);
  else
    Second(path >> 1, depth - 1);
  __asm__ volatile("" ::: "memory");  // no tail call
}

static __attribute__((noinline)) void First(unsigned path, int depth) {
  Go(path, depth);
}

static __attribute__((noinline)) void Second(unsigned path, int depth) {
  Go(path, depth);
  __asm__ volatile("nop");  // not the same function
}

int main(int argc, char** argv) {
  const int depth = argc > 1 ? atoi(argv[1]) : 18;
  for (unsigned path = 0; path < 1u << depth; ++path)
    First(path, depth);
  return 0;
}
