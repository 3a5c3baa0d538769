// An allocator whose functions begin as ENTRY says: with a marker for indirect branches (1), with the no-operation that
// compilers leave for patching (2), or with a jump to the function proper (3). A library, to be preloaded.
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#if ENTRY == 1
#define BEGIN(name) ".byte 0xf3, 0x0f, 0x1e, 0xfa\n"
#elif ENTRY == 2
#define BEGIN(name) ".byte 0x0f, 0x1f, 0x44, 0, 0\n"
#else
#define BEGIN(name) ".byte 0xe9\n .long body_" #name " - . - 4\n.balign 16\nbody_" #name ":\n"
#endif
#define FUNCTION(name)                                                                                         \
  __asm__(".globl " #name "\n.type " #name ", @function\n.balign 16\n" #name ":\n" BEGIN(name) " sub $8, %rsp\n call impl_" \
          #name "\n add $8, %rsp\n ret\n.size " #name ", . - " #name "\n")
FUNCTION(malloc);
FUNCTION(free);
FUNCTION(calloc);
FUNCTION(realloc);
FUNCTION(memalign);
FUNCTION(posix_memalign);

#define IMPL __attribute__((visibility("hidden"), used))
enum { kClasses = 40, kHeader = 16 };
struct block {
  struct block* next;
  uint64_t class;
};
static struct block* free_blocks[kClasses];
static char *room, *room_end;
static volatile char lock;

static int class_of(size_t size) {
  int class = 5;
  while (((size_t)1 << class) < size + kHeader)
    ++class;
  return class;
}

IMPL void* impl_malloc(size_t size) {
  const int class = class_of(size);
  while (__atomic_test_and_set(&lock, __ATOMIC_ACQUIRE)) {
  }
  struct block* block = free_blocks[class];
  if (block != NULL) {
    free_blocks[class] = block->next;
  } else {
    const size_t bytes = (size_t)1 << class;
    if ((size_t)(room_end - room) < bytes) {
      const size_t more = bytes + (1 << 20);
      room = mmap(NULL, more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      room_end = room + more;
    }
    block = (struct block*)room;
    room += bytes;
  }
  __atomic_clear(&lock, __ATOMIC_RELEASE);
  block->class = (uint64_t)class;
  return (char*)block + kHeader;
}

// The header of an aligned block is right before it, too: of class 0 the block begins elsewhere.
IMPL void impl_free(void* pointer) {
  if (pointer == NULL)
    return;
  struct block* block = (struct block*)((char*)pointer - kHeader);
  if (block->class == 0)
    block = block->next;
  while (__atomic_test_and_set(&lock, __ATOMIC_ACQUIRE)) {
  }
  block->next = free_blocks[block->class];
  free_blocks[block->class] = block;
  __atomic_clear(&lock, __ATOMIC_RELEASE);
}

IMPL void* impl_calloc(size_t count, size_t size) {
  void* pointer = impl_malloc(count * size);
  return memset(pointer, 0, count * size);
}

IMPL void* impl_memalign(size_t alignment, size_t size) {
  char* pointer = impl_malloc(size + alignment + kHeader);
  const uintptr_t aligned = ((uintptr_t)pointer + alignment - 1) & ~(uintptr_t)(alignment - 1);
  if (aligned == (uintptr_t)pointer)
    return pointer;
  struct block* header = (struct block*)((aligned < (uintptr_t)pointer + kHeader ? aligned + alignment : aligned) - kHeader);
  header->next = (struct block*)(pointer - kHeader);
  header->class = 0;
  return (char*)header + kHeader;
}

IMPL void* impl_realloc(void* pointer, size_t size) {
  void* now = impl_malloc(size);
  if (pointer != NULL) {
    const struct block* block = (struct block*)((char*)pointer - kHeader);
    const size_t before = ((size_t)1 << block->class) - kHeader;
    memcpy(now, pointer, before < size ? before : size);
    impl_free(pointer);
  }
  return now;
}

IMPL int impl_posix_memalign(void** pointer, size_t alignment, size_t size) {
  *pointer = impl_memalign(alignment, size);
  return 0;
}
