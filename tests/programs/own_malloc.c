// Has an allocator of its own in its executable, which lacks one function of the C
// library's: 1000 blocks of 100 bytes by the one (`own_block`), and one of 77 bytes by the
// other.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static char memory[1 << 22];
static size_t used;

void* malloc(size_t size) {
  const size_t begin = (used + 31) & ~(size_t)15;
  if (size > sizeof(memory) || begin > sizeof(memory) - size)
    return NULL;
  used = begin + size;
  *(size_t*)(memory + begin - 16) = size;
  return memory + begin;
}

void free(void* block) {
  (void)block;
}

void* calloc(size_t count, size_t size) {
  return count != 0 && size > SIZE_MAX / count ? NULL : malloc(count * size);
}

void* realloc(void* old, size_t size) {
  void* block = malloc(size);
  if (old != NULL && block != NULL) {
    const size_t before = *(size_t*)((char*)old - 16);
    memcpy(block, old, before < size ? before : size);
  }
  return block;
}

__attribute__((noinline)) void* own_block(void) {
  void* volatile block = malloc(100);
  return block;
}

int main(void) {
  for (int i = 0; i < 1000; ++i) {
    void* volatile keep = own_block();
    (void)keep;
  }
  void* block = NULL;
  return posix_memalign(&block, 64, 77);
}
