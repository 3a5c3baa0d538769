// Processes that hold as much again and again: each fills its heap, then exchanges one
// block after the other, and frees all.
//   known_peak PROCESSES
// One after the other, children of this process. Prints the bytes that each holds at
// most.
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kBlocks = 876, kBlockSize = 500, kExchanges = 150000 };

static void hold_and_exchange(unsigned random) {
  static void* volatile blocks[kBlocks];
  for (int i = 0; i < kBlocks; ++i)
    blocks[i] = malloc(kBlockSize);
  for (int i = 0; i < kExchanges; ++i) {
    random = random * 1664525 + 1013904223;
    const unsigned which = (random >> 8) % kBlocks;
    free(blocks[which]);
    blocks[which] = malloc(kBlockSize);
  }
  for (int i = 0; i < kBlocks; ++i)
    free(blocks[i]);
}

int main(int argc, char** argv) {
  const int processes = argc > 1 ? atoi(argv[1]) : 1;
  // This process itself allocates next to nothing, so that it has hardly ever a sample.
  static char buffer[64];
  setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
  void* volatile little = malloc(16);
  free(little);
  for (int i = 0; i < processes; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      hold_and_exchange((unsigned)i);
      _exit(0);
    }
    if (child < 0 || waitpid(child, NULL, 0) != child)
      return 1;
  }
  printf("%d\n", kBlocks * kBlockSize);
  return 0;
}
