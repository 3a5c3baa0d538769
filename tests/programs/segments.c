// Keeps blocks from functions of three executable segments. How it is linked puts them at
// different distances from their places in the file (CMakeLists.txt). Each letter on
// standard input keeps another 100 blocks per function and is answered by a line.
#include <stdio.h>
#include <stdlib.h>

#define USUAL __attribute__((noinline))
#define HOT __attribute__((noinline, section(".hot_text")))
#define HOTTER __attribute__((noinline, section(".hotter_text")))

// No call is the last thing that its function does: so that each has a frame.
#define AFTERWARDS() __asm__ volatile("" ::: "memory")

static void* volatile kept;

#define KEEPS(where, name, size) \
  where void name(void) {        \
    kept = malloc(size);         \
    AFTERWARDS();                \
  }
#define CALLS(where, name, callee) \
  where void name(void) {          \
    callee();                      \
    AFTERWARDS();                  \
  }

KEEPS(USUAL, usual_leaf, 1000)
KEEPS(HOT, hot_leaf, 2000)
KEEPS(HOTTER, hotter_leaf, 3000)
CALLS(HOTTER, hotter_above_usual, usual_leaf)
CALLS(HOT, hot_above_hotter, hotter_above_usual)
CALLS(USUAL, usual_above_hot, hot_leaf)
CALLS(HOTTER, hotter_above_both, usual_above_hot)
CALLS(USUAL, usual_above_hotter, hotter_leaf)
CALLS(HOT, hot_above_both, usual_above_hotter)

int main(void) {
  setvbuf(stdin, NULL, _IONBF, 0);
  do {
    for (int i = 0; i < 100; ++i) {
      hot_above_hotter();
      hotter_above_both();
      hot_above_both();
    }
    puts("ready");
    fflush(stdout);
  } while (getchar() != EOF);
  return 0;
}
