// Statically linked: nothing can be preloaded into it, and the profiler must say so.
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  void* volatile block = malloc(100000);
  puts(block != NULL ? "static ok" : "");
  return 3;
}
