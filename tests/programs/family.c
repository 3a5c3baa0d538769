// Calls every function of the malloc family, the failing ways included, and exits 1 when
// any of them behaves otherwise than documented. Must behave the same with and without
// the profiler, over any allocator.
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPECT(condition)                                                      \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

static volatile size_t huge = PTRDIFF_MAX;
static volatile size_t half = SIZE_MAX / 2 + 2;

__attribute__((noinline)) static int is_filled(const unsigned char* bytes,
                                               size_t size,
                                               unsigned char value) {
  for (size_t i = 0; i < size; ++i)
    if (bytes[i] != value)
      return 0;
  return 1;
}

__attribute__((noinline)) void succeeds(size_t size) {
  errno = 4711;
  unsigned char* a = malloc(size);
  unsigned char* b = calloc(3, size);
  EXPECT(a && b && is_filled(b, 3 * size, 0));
  memset(a, 7, size);
  a = realloc(a, 5 * size);
  EXPECT(a && is_filled(a, size, 7));
  a = reallocarray(a, 2, size);
  EXPECT(a && is_filled(a, size, 7));
  void* c = NULL;
  EXPECT(posix_memalign(&c, 256, size) == 0 && (uintptr_t)c % 256 == 0);
  void* d = aligned_alloc(64, (size + 63) / 64 * 64);
  void* e = memalign(128, size);
  void* f = valloc(size);
  EXPECT(d && e && f && (uintptr_t)d % 64 == 0 && (uintptr_t)e % 128 == 0);
  EXPECT((uintptr_t)f % (size_t)sysconf(_SC_PAGESIZE) == 0);
  EXPECT(malloc_usable_size(a) >= 2 * size && malloc_usable_size(NULL) == 0);
  void* g = realloc(NULL, size);
  EXPECT(g);
  EXPECT(errno == 4711);
  free(a), free(b), free(c), free(d), free(e), free(f), free(g), free(NULL);
  EXPECT(errno == 4711);
}

__attribute__((noinline)) void fails(void) {
  errno = 0;
  EXPECT(malloc(huge) == NULL && errno == ENOMEM);
  errno = 0;
  EXPECT(calloc(half, 2) == NULL && errno == ENOMEM);
  unsigned char* kept = malloc(10000);
  memset(kept, 9, 10000);
  errno = 0;
  EXPECT(realloc(kept, huge) == NULL && errno == ENOMEM);
  errno = 0;
  EXPECT(reallocarray(kept, half, 2) == NULL && errno == ENOMEM);
  EXPECT(is_filled(kept, 10000, 9));
  free(kept);
  void* untouched = (void*)&huge;
  errno = 0;
  EXPECT(posix_memalign(&untouched, 3, 100) == EINVAL && untouched == (void*)&huge);
  EXPECT(posix_memalign(&untouched, 64, huge) == ENOMEM);
  EXPECT(memalign(64, huge) == NULL);
}

int main(void) {
  for (int round = 0; round < 200; ++round) {
    succeeds(16);
    succeeds(1000);
    succeeds(70000);
    fails();
  }
  void* zero = malloc(0);
  EXPECT(zero != NULL);
  free(zero);
  puts("family ok");
  return 0;
}
