// Calls every allocation function from a function of its own: by_malloc keeps a block of
// 1001 bytes, by_calloc one of 1002, and so on; by_inlined calls malloc in a function
// that is inlined into it. Prints {"function": bytes, ...}.
#include <malloc.h>

#include <cstdio>
#include <cstdlib>
#include <new>

static int g_size = 1000;
static void* volatile g_none = nullptr;

#define KEEP(name, allocation)                                       \
  extern "C" __attribute__((noinline)) void by_##name(size_t size) { \
    void* volatile kept = allocation;                                \
    static_cast<void>(kept);                                         \
  }

#define CALL(name, separator)               \
  by_##name(static_cast<size_t>(++g_size)); \
  printf("%s\"by_" #name "\": %d", separator, g_size)

static void* PosixMemalign(size_t size) __attribute__((always_inline));

static inline void* PosixMemalign(size_t size) {
  void* block = nullptr;
  return posix_memalign(&block, 64, size) == 0 ? block : nullptr;
}

static void* Inlined(size_t size) __attribute__((always_inline));

static inline void* Inlined(size_t size) {
  return malloc(size);
}

KEEP(malloc, malloc(size))
KEEP(calloc, calloc(1, size))
KEEP(realloc, realloc(g_none, size))
KEEP(reallocarray, reallocarray(g_none, 1, size))
KEEP(memalign, memalign(64, size))
KEEP(aligned_alloc, aligned_alloc(64, size))
KEEP(posix_memalign, PosixMemalign(size))
KEEP(valloc, valloc(size))
KEEP(new, operator new(size))
KEEP(new_array, operator new[](size))
KEEP(new_nothrow, operator new(size, std::nothrow))
KEEP(inlined, Inlined(size))

int main() {
  CALL(malloc, "{");
  CALL(calloc, ", ");
  CALL(realloc, ", ");
  CALL(reallocarray, ", ");
  CALL(memalign, ", ");
  CALL(aligned_alloc, ", ");
  CALL(posix_memalign, ", ");
  CALL(valloc, ", ");
  CALL(new, ", ");
  CALL(new_array, ", ");
  CALL(new_nothrow, ", ");
  CALL(inlined, ", ");
  puts("}");
}
