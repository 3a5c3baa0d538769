// Two heaps of its own beside malloc's, with known answers: custom_heaps [SCALE] prints
// {heap: {function: [alloc_count, alloc_bytes, live_count, live_bytes]}} as JSON.
#include <stdio.h>
#include <stdlib.h>

#include <heapprofd/heap_profile.h>

static uint32_t blocks_heap;
static uint32_t slots_heap;

// Blocks that are found by their address.
__attribute__((noinline)) void* block_alloc(size_t size) {
  void* block = malloc(size);
  AHeapProfile_reportAllocation(blocks_heap, (uintptr_t)block, size);
  return block;
}

__attribute__((noinline)) void block_free(void* block) {
  AHeapProfile_reportFree(blocks_heap, (uintptr_t)block);
  free(block);
}

// Places in a table that are found by their number.
__attribute__((noinline)) void slot_take(uint64_t number) {
  AHeapProfile_reportAllocation(slots_heap, number, 7);
}

__attribute__((noinline)) void takes_blocks(int scale) {
  for (int i = 0; i < 1000 * scale; ++i) {
    void* block = block_alloc(1024);
    if (i % 4 != 0)
      block_free(block);
  }
}

__attribute__((noinline)) void takes_slots(int scale) {
  for (int i = 0; i < 5000 * scale; ++i)
    slot_take((uint64_t)i);
  for (int i = 0; i < 3000 * scale; ++i)
    AHeapProfile_reportFree(slots_heap, (uint64_t)i);
}

__attribute__((noinline)) void reuses_slots(int scale) {
  for (int i = 0; i < 100 * scale; ++i)
    slot_take(UINT64_MAX);  // each one ends the one before
}

int main(int argc, char** argv) {
  const int scale = argc > 1 ? atoi(argv[1]) : 1;
  blocks_heap = AHeapProfile_registerHeap(AHeapInfo_create("com.example.blocks"));
  slots_heap = AHeapProfile_registerHeap(AHeapInfo_create("com.example.slots"));
  takes_blocks(scale);
  takes_slots(scale);
  reuses_slots(scale);
  printf("{\"com.example.blocks\": {\"takes_blocks\": [%d, %d, %d, %d]}, ", 1000 * scale,
         1024000 * scale, 250 * scale, 256000 * scale);
  printf("\"com.example.slots\": {\"takes_slots\": [%d, %d, %d, %d], ", 5000 * scale,
         35000 * scale, 2000 * scale, 14000 * scale);
  printf("\"reuses_slots\": [%d, %d, 1, 7]}}\n", 100 * scale, 700 * scale);
  return 0;
}
