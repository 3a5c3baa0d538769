// Corners of the malloc family whose answers differ between allocators, or that few
// programs touch. Prints what happened; must print the same with and without the
// profiler. `balanced` and `whole_page` free everything they allocate. Usage: corners
// [pvalloc]; without the word pvalloc is only called to fail, since jemalloc leaves the
// function to glibc, whose block its free() then cannot take.
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile size_t zero = 0;
static volatile size_t huge = PTRDIFF_MAX;
static volatile size_t half = SIZE_MAX / 2 + 2;

static void say(const char* what, int answer) {
  printf("%s: %d\n", what, answer);
}

__attribute__((noinline)) void balanced(void) {
  char* block = malloc(100);
  memset(block, 5, 100);
  say("realloc to the same size keeps the bytes",
      (block = realloc(block, 100)) != NULL && block[99] == 5);
  say("realloc to less keeps the bytes",
      (block = realloc(block, 10)) != NULL && block[9] == 5);
  char* moved = realloc(block, 1 << 20);
  say("realloc to much more keeps the bytes", moved != NULL && moved[9] == 5);
  errno = 0;
  void* none = realloc(moved, zero);
  say("realloc to nothing gives a block", none != NULL);
  say("realloc to nothing sets errno", errno);
  free(none);
  void* empty = calloc(zero, 8);
  say("calloc of nothing gives a block", empty != NULL);
  free(empty);
  void* aligned = NULL;
  say("posix_memalign of nothing", posix_memalign(&aligned, 64, zero));
  free(aligned);
}

__attribute__((noinline)) void whole_page(void) {
  void* page = pvalloc(1);
  say("pvalloc gives a whole page",
      malloc_usable_size(page) >= (size_t)sysconf(_SC_PAGESIZE));
  free(page);
}

__attribute__((noinline)) void refused(void) {
  errno = 0;
  say("aligned_alloc beyond memory", aligned_alloc(64, huge) == NULL);
  say("aligned_alloc sets errno", errno);
  errno = 0;
  say("valloc beyond memory", valloc(huge) == NULL);
  say("valloc sets errno", errno);
  errno = 0;
  say("pvalloc beyond memory", pvalloc(huge) == NULL);
  say("pvalloc sets errno", errno);
  errno = 0;
  say("reallocarray that overflows", reallocarray(NULL, half, 2) == NULL);
  say("reallocarray sets errno", errno);
  errno = 0;
  void* untouched = (void*)&zero;
  say("posix_memalign of no power of two", posix_memalign(&untouched, 24, 100));
  say("posix_memalign below a pointer's size", posix_memalign(&untouched, 4, 100));
  say("posix_memalign leaves errno alone", errno);
  say("posix_memalign leaves the pointer alone", untouched == (void*)&zero);
}

int main(int argc, char** argv) {
  static char buffer[4096];  // stdio would allocate one inside the first caller
  setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
  balanced();
  refused();
  if (argc > 1 && strcmp(argv[1], "pvalloc") == 0)
    whole_page();
  return 0;
}
