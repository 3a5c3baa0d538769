// Allocates known numbers of known sizes from functions with distinct names, frees part
// of them, and prints the truth as JSON: {function: [alloc_count, alloc_bytes,
// live_count, live_bytes]}. Usage: known_stacks [SCALE]
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEEP(name, size, count, keep_every)          \
  __attribute__((noinline)) void* name(void) {       \
    void* block = malloc(size);                      \
    memset(block, 1, size);                          \
    return block;                                    \
  }                                                  \
  static void run_##name(int scale) {                \
    for (long i = 0; i < (long)(count)*scale; ++i) { \
      void* volatile block = name();                 \
      if (i % (keep_every) != 0)                     \
        free(block);                                 \
    }                                                \
  }

KEEP(leaks_all_small, 24, 3000, 1)
KEEP(leaks_half_medium, 200, 2000, 2)
KEEP(leaks_tenth_large, 3000, 1000, 10)
KEEP(leaks_huge, 100000, 20, 1)
KEEP(frees_nearly_all, 64, 5000, 5000)

static void report(
    const char* name, long size, long count, long keep_every, const char* end) {
  const long live = (count + keep_every - 1) / keep_every;
  printf("\"%s\": [%ld, %ld, %ld, %ld]%s", name, count, count * size, live, live * size,
         end);
}

int main(int argc, char** argv) {
  const int scale = argc > 1 ? atoi(argv[1]) : 1;
  run_leaks_all_small(scale);
  run_leaks_half_medium(scale);
  run_leaks_tenth_large(scale);
  run_leaks_huge(scale);
  run_frees_nearly_all(scale);
  printf("{");
  report("leaks_all_small", 24, 3000L * scale, 1, ", ");
  report("leaks_half_medium", 200, 2000L * scale, 2, ", ");
  report("leaks_tenth_large", 3000, 1000L * scale, 10, ", ");
  report("leaks_huge", 100000, 20L * scale, 1, ", ");
  report("frees_nearly_all", 64, 5000L * scale, 5000, "}\n");
  return 0;
}
