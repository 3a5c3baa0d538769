// A library that dl.c loads again and again: PLUGIN_NAME allocates and keeps 1500 bytes.
#include <stdlib.h>

__attribute__((noinline)) void* PLUGIN_NAME(void) {
  void* volatile block = malloc(1500);
  return block;
}

void* run(void) {
  return PLUGIN_NAME();
}
