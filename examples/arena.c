// An arena: blocks are cut from chunks one after the other and all freed at once.
//
// What to look at: every block is reported with its address; chunks are taken from malloc
// between heapprofd_nested_begin and _end, so malloc's heap does not show them a second
// time; freeing the arena reports its blocks, which it knows because they lie in a row.
//
// Usage: arena [REQUESTS]; prints the bytes that are live at its end.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <heapprofd/heap_profile.h>

enum { kChunkBytes = 65536, kAlignment = 16 };

static uint32_t arena_heap;

struct chunk {
  struct chunk* next;
  size_t used;  // bytes behind this header
  _Alignas(kAlignment) char bytes[];
};

struct arena {
  struct chunk* newest;
};

// Blocks are found again by the size in front of them.
struct block_header {
  _Alignas(kAlignment) size_t size;
};

static struct chunk* take_chunk(struct chunk* next) {
  const uint32_t scope = heapprofd_nested_begin(arena_heap);
  struct chunk* chunk = malloc(kChunkBytes);
  heapprofd_nested_end(scope);
  if (chunk == NULL)
    abort();
  chunk->next = next;
  chunk->used = 0;
  return chunk;
}

void* arena_alloc(struct arena* arena, size_t size) {
  const size_t rounded = (size + kAlignment - 1) / kAlignment * kAlignment;
  const size_t needed = sizeof(struct block_header) + rounded;
  if (needed > kChunkBytes - sizeof(struct chunk))
    return NULL;
  if (arena->newest == NULL ||
      arena->newest->used + needed > kChunkBytes - sizeof(struct chunk))
    arena->newest = take_chunk(arena->newest);
  struct block_header* header =
      (struct block_header*)(arena->newest->bytes + arena->newest->used);
  arena->newest->used += needed;
  header->size = rounded;
  AHeapProfile_reportAllocation(arena_heap, (uintptr_t)(header + 1), size);
  return header + 1;
}

void arena_free_all(struct arena* arena) {
  while (arena->newest != NULL) {
    struct chunk* chunk = arena->newest;
    for (size_t at = 0; at < chunk->used;) {
      const struct block_header* header = (const struct block_header*)(chunk->bytes + at);
      AHeapProfile_reportFree(arena_heap, (uintptr_t)(header + 1));
      at += sizeof(struct block_header) + header->size;
    }
    arena->newest = chunk->next;
    free(chunk);
  }
}

// A request allocates 200 headers of 40 bytes and a body of 5000 bytes.
__attribute__((noinline)) int parse_headers(struct arena* arena) {
  int parsed = 0;
  for (int i = 0; i < 200; ++i)
    parsed += arena_alloc(arena, 40) != NULL;
  return parsed;
}

__attribute__((noinline)) int read_body(struct arena* arena) {
  char* body = arena_alloc(arena, 5000);
  memset(body, 'x', 5000);
  return body[4999];
}

int main(int argc, char** argv) {
  const int requests = argc > 1 ? atoi(argv[1]) : 100;
  arena_heap = AHeapProfile_registerHeap(AHeapInfo_create("com.example.arena"));
  struct arena arenas[2] = {{NULL}, {NULL}};  // the last two requests are kept
  int sum = 0;
  for (int i = 0; i < requests; ++i) {
    struct arena* arena = &arenas[i % 2];
    arena_free_all(arena);
    sum += parse_headers(arena) + read_body(arena);
  }
  printf("live %d\n", sum == 0 ? 0 : 2 * (200 * 40 + 5000));
  return 0;
}
