// odd_calls fail|zero ROUNDS: that many allocations which fail in every way, or of no
// bytes at all.
#define _GNU_SOURCE
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile size_t huge = PTRDIFF_MAX;
static volatile size_t half = SIZE_MAX / 2 + 2;
static volatile size_t none = 0;
static void* volatile keep;

__attribute__((noinline)) void fail(void) {
  static void* block;
  keep = malloc(huge);
  keep = calloc(half, 2);
  keep = calloc(huge, 1);
  keep = realloc(NULL, huge);
  keep = reallocarray(NULL, half, 2);
  keep = aligned_alloc(64, huge);
  keep = memalign(64, huge);
  if (posix_memalign(&block, 3, 10) == 0 || posix_memalign(&block, 64, huge) == 0)
    exit(1);
}

__attribute__((noinline)) void zero(void) {
  keep = malloc(none);
  if (keep == NULL)
    exit(1);
}

int main(int argc, char** argv) {
  const int rounds = argc == 3 ? atoi(argv[2]) : 0;
  for (int i = 0; i < rounds; ++i) {
    if (strcmp(argv[1], "fail") == 0)
      fail();
    else
      zero();
  }
  return 0;
}
