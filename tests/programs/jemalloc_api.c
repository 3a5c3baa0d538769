// Uses jemalloc's own interface, when there is one, from functions with distinct names,
// and prints the truth as JSON: {function: [alloc_count, live_count, live_bytes]};
// without one it prints {}. Exits 1 when a function behaves otherwise than documented.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WEAK __attribute__((weak))
WEAK void* mallocx(size_t size, int flags);
WEAK void* rallocx(void* block, size_t size, int flags);
WEAK size_t xallocx(void* block, size_t size, size_t extra, int flags);
WEAK size_t sallocx(const void* block, int flags);
WEAK void dallocx(void* block, int flags);
WEAK void sdallocx(void* block, size_t size, int flags);
WEAK size_t nallocx(size_t size, int flags);

#define ALIGN_256 8
#define ZERO 64

#define EXPECT(condition)                                                      \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

enum { kRounds = 100 };

static volatile size_t huge = PTRDIFF_MAX;
static void* volatile keep;

__attribute__((noinline)) void keeps(void) {
  keep = mallocx(1000, 0);
  EXPECT(keep != NULL && sallocx(keep, 0) >= 1000 && nallocx(1000, 0) >= 1000);
}

__attribute__((noinline)) void frees(void) {
  unsigned char* block = mallocx(3000, ALIGN_256 | ZERO);
  EXPECT((uintptr_t)block % 256 == 0 && block[0] == 0 && block[2999] == 0);
  dallocx(block, ALIGN_256);
  block = mallocx(3000, 0);
  memset(block, 1, 3000);
  sdallocx(block, 3000, 0);
}

__attribute__((noinline)) void moves(void) {
  unsigned char* block = mallocx(500, 0);
  memset(block, 9, 500);
  block = rallocx(block, 60000, ALIGN_256);
  EXPECT((uintptr_t)block % 256 == 0 && block[0] == 9 && block[499] == 9);
  EXPECT(rallocx(block, huge, 0) == NULL && block[499] == 9);
  keep = block;
}

__attribute__((noinline)) void fails(void) {
  EXPECT(mallocx(huge, 0) == NULL);
}

// Bytes that the block counts for afterwards.
__attribute__((noinline)) size_t resizes(void) {
  void* block = mallocx(400000, 0);
  const size_t before = sallocx(block, 0);
  const size_t now = xallocx(block, 100000, 0, 0);
  EXPECT(now == sallocx(block, 0));
  EXPECT(xallocx(block, huge, 0, 0) == now);
  keep = block;
  return now != before ? 100000 : 400000;
}

int main(void) {
  if (mallocx == NULL) {
    puts("{}");
    return 0;
  }
  size_t resized = 0;
  for (int i = 0; i < kRounds; ++i) {
    keeps();
    frees();
    moves();
    fails();
    resized += resizes();
  }
  const int changed = resized != (size_t)kRounds * 400000;
  printf(
      "{\"keeps\": [%d, %d, %d], \"frees\": [%d, 0, 0], \"moves\": [%d, %d, %d], "
      "\"fails\": [0, 0, 0], "
      "\"resizes\": [%d, %d, %zu]}\n",
      kRounds, kRounds, kRounds * 1000, 2 * kRounds, 2 * kRounds, kRounds,
      kRounds * 60000, changed ? 2 * kRounds : kRounds, kRounds, resized);
  return 0;
}
