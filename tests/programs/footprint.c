// Does what it is told on standard input, a letter at a time, so that a test can compare
// what the kernel counts for it with and without a profiler:
//   a  allocates a little and answers "kept"
//   l  locks its memory, present and future, and answers "locked", or the error
//   d  aborts, for a core dump
// It ends with its input.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void* kept[10000];
static int count;

__attribute__((noinline)) static void keep(void) {
  for (int i = 0; i < 100 && count < 10000; ++i)
    kept[count++] = malloc(100);
}

__attribute__((noinline)) void die(void) {
  abort();
}

static void answer(const char* text) {
  puts(text);
  fflush(stdout);
}

int main(void) {
  setvbuf(stdin, NULL, _IONBF, 0);
  keep();
  answer("ready");
  int letter;
  while ((letter = getchar()) != EOF) {
    if (letter == 'a') {
      keep();
      answer("kept");
    } else if (letter == 'l') {
      answer(mlockall(MCL_CURRENT | MCL_FUTURE) == 0 ? "locked" : strerror(errno));
    } else if (letter == 'd') {
      die();
    }
  }
  return 0;
}
