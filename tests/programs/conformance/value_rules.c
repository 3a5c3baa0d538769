// What the malloc family answers: sizes of nothing and beyond memory, alignments, errno,
// contents (C11 7.22.3, POSIX, glibc's manual).
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rules.h"

static volatile size_t none = 0;
static volatile size_t huge = (size_t)PTRDIFF_MAX + 1;
static volatile size_t half = SIZE_MAX / 2 + 2;
static volatile size_t all = SIZE_MAX;
static char g_anchor;  // what a pointer must still point to

static int is_filled(const unsigned char* bytes, size_t size, unsigned char value) {
  for (size_t i = 0; i < size; ++i)
    if (bytes[i] != value)
      return 0;
  return 1;
}

static int is_aligned(const void* block, size_t alignment) {
  return block != NULL && (uintptr_t)block % alignment == 0;
}

static void sizes_of_nothing(void) {
  errno = 0;
  void* one = malloc(none);
  void* other = malloc(none);
  holds("two blocks of nothing are two blocks", one == NULL || one != other);
  observe("malloc of nothing gives a block", one != NULL);
  free(one), free(other);
  void* cleared = calloc(none, 8);
  void* counted = calloc(8, none);
  observe("calloc of nothing gives a block", (cleared != NULL) + 2 * (counted != NULL));
  free(cleared), free(counted);
  void* grown = realloc(NULL, none);
  observe("realloc from nothing to nothing gives a block", grown != NULL);
  free(grown);
  void* aligned = NULL;
  observe("posix_memalign of nothing", posix_memalign(&aligned, 64, none));
  free(aligned);
  void* c11 = aligned_alloc(64, none);
  observe("aligned_alloc of nothing gives a block", c11 != NULL);
  free(c11);
  free(NULL);
  holds("nothing of this sets errno", errno == 0);
}

static int fails(void* block) {
  const int error = errno;
  errno = 0;
  free(block);
  return block == NULL && error == ENOMEM;
}

static void sizes_beyond_memory(void) {
  errno = 0;
  for (int i = 0; i < 2; ++i) {
    const size_t size = i == 0 ? huge : all;
    observe("malloc fails", fails(malloc(size)));
    observe("calloc fails", fails(calloc(1, size)) + 2 * fails(calloc(size, 1)));
    observe("realloc fails", fails(realloc(NULL, size)));
    observe("aligned_alloc fails", fails(aligned_alloc(64, size & ~(size_t)63)));
    observe("memalign fails", fails(memalign(4096, size)));
    void* untouched = &g_anchor;
    observe("posix_memalign fails", posix_memalign(&untouched, 64, size));
    holds("posix_memalign leaves the pointer alone", untouched == &g_anchor);
    errno = 0;
  }
  holds("a product that overflows fails",
        fails(calloc(half, 2)) && fails(calloc(2, half)) && fails(calloc(all, all)));
  holds("reallocarray's, too", fails(reallocarray(NULL, half, 2)));
  unsigned char* kept = malloc(1000);
  unsigned char* volatile same = kept;  // the compiler takes it to be gone
  memset(kept, 9, 1000);
  errno = 0;
  holds("realloc that fails", realloc(kept, huge) == NULL && errno == ENOMEM);
  holds("reallocarray that fails", reallocarray(same, half, 2) == NULL);
  holds("leave the block as it is", is_filled(same, 1000, 9));
  free(same);
}

static void alignments(void) {
  int is_kept = 1;
  for (size_t size = 1; size <= 4096; ++size) {
    void* block = malloc(size);
    size_t alignment = 16;
    while (alignment > size)
      alignment /= 2;
    is_kept &= is_aligned(block, alignment);
    free(block);
  }
  holds("a block is aligned for every object that fits", is_kept);
  is_kept = 1;
  for (size_t alignment = sizeof(void*); alignment <= (size_t)1 << 24; alignment *= 2) {
    void* blocks[3] = {NULL, aligned_alloc(alignment, alignment), memalign(alignment, 1)};
    is_kept &= posix_memalign(&blocks[0], alignment, 100) == 0;
    for (int i = 0; i < 3; ++i) {
      is_kept &= is_aligned(blocks[i], alignment);
      if (blocks[i] != NULL)
        memset(blocks[i], 1, 1);
    }
    is_kept &= malloc_usable_size(blocks[0]) >= 100;
    for (int i = 0; i < 3; ++i)
      free(blocks[i]);
  }
  holds("every power of two is an alignment", is_kept);
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  void* whole = valloc(1);
  holds("valloc gives the begin of a page", is_aligned(whole, page));
  free(whole);
  errno = 0;
  void* untouched = &g_anchor;
  holds("posix_memalign refuses what is no power of two",
        posix_memalign(&untouched, 24, 10) == EINVAL);
  observe("posix_memalign refuses what is no multiple of a pointer",
          posix_memalign(&untouched, 4, 10));
  observe("posix_memalign refuses no alignment", posix_memalign(&untouched, none, 10));
  holds("refusals touch neither errno nor the pointer",
        errno == 0 && untouched == &g_anchor);
  observe("an alignment beyond memory", posix_memalign(&untouched, half - 2 + 1, 10));
}

static void errors_are_kept(void) {
  errno = 4711;
  static const size_t kSizes[] = {1, 100, 5000, 200000, 5000000};
  int is_kept = 1;
  for (size_t i = 0; i < sizeof(kSizes) / sizeof(kSizes[0]); ++i) {
    void* block = malloc(kSizes[i]);
    block = realloc(block, 2 * kSizes[i]);
    block = reallocarray(block, 3, kSizes[i]);
    void* aligned = NULL;
    is_kept &= posix_memalign(&aligned, 512, kSizes[i]) == 0;
    void* cleared = calloc(2, kSizes[i]);
    is_kept &= block != NULL && cleared != NULL && malloc_usable_size(block) > 0;
    free(block), free(aligned), free(cleared), free(NULL);
  }
  holds("what succeeds leaves errno alone", is_kept && errno == 4711);
}

static void usable_bytes(void) {
  enum { kBlocks = 64 };

  unsigned char* blocks[kBlocks];
  size_t usable[kBlocks];
  int is_kept = malloc_usable_size(NULL) == 0;
  for (size_t i = 0; i < kBlocks; ++i) {
    const size_t size = 1 + 37 * i;
    blocks[i] = malloc(size);
    usable[i] = malloc_usable_size(blocks[i]);
    is_kept &= usable[i] >= size;
    memset(blocks[i], (int)i, usable[i]);
  }
  for (size_t i = 0; i < kBlocks; ++i)
    is_kept &= is_filled(blocks[i], usable[i], (unsigned char)i);
  holds("all usable bytes are the block's own", is_kept);
  for (size_t i = 0; i < kBlocks; ++i)
    free(blocks[i]);
}

static void contents(void) {
  int is_clear = 1;
  int is_same = 1;
  for (size_t size = 1; size < (size_t)1 << 20; size = size * 3 + 1) {
    unsigned char* dirty = malloc(size);
    memset(dirty, 0xff, size);
    free(dirty);
    unsigned char* cleared = calloc(size, 1);
    is_clear &= is_filled(cleared, size, 0);
    memset(cleared, 7, size);
    cleared = realloc(cleared, 4 * size);
    is_same &= is_filled(cleared, size, 7);
    cleared = realloc(cleared, (size + 1) / 2);
    is_same &= is_filled(cleared, (size + 1) / 2, 7);
    free(cleared);
    void* aligned = NULL;
    is_same &= posix_memalign(&aligned, 4096, size) == 0;
    memset(aligned, 8, size);
    aligned = realloc(aligned, 2 * size);
    is_same &= is_filled(aligned, size, 8);
    free(aligned);
  }
  holds("calloc clears what was used before", is_clear);
  holds("realloc keeps what fits", is_same);
  char* grown = strdup("x");
  grown = realloc(grown, 100000);
  holds("blocks of the library are blocks", grown != NULL && strcmp(grown, "x") == 0);
  free(grown);
}

void value_rules(void) {
  sizes_of_nothing();
  sizes_beyond_memory();
  alignments();
  errors_are_kept();
  usable_bytes();
  contents();
}
