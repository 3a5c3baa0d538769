// The plugin of ways_past.c.
#include <stdlib.h>

void* plugin_keeps(size_t size) {
  void* block = malloc(size);
  __asm__ volatile("" ::"r"(block) : "memory");
  return block;
}

void plugin_frees(void* block) {
  free(block);
}
