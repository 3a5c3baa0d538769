// Does what it is told on standard input, a letter at a time, and answers each with a line:
//   a  keeps 1000 more blocks of 1000 bytes (`kept_block`)
//   f  frees all kept blocks
//   c  forks a child that keeps 1000 blocks and waits until this program ends
//   q  ends
// With a number as its argument it does `a` that often by itself, then waits for the end
// of its input.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BLOCKS 1000
static void* kept[100 * BLOCKS];
static int count;

__attribute__((noinline)) void* kept_block(void) {
  void* volatile block = calloc(1, 1000);
  return block;
}

static void keep_more(void) {
  for (int i = 0; i < BLOCKS && count < 100 * BLOCKS; ++i)
    kept[count++] = kept_block();
}

static void answer(const char* text) {
  puts(text);
  fflush(stdout);
}

int main(int argc, char** argv) {
  setvbuf(stdin, NULL, _IONBF, 0);
  const int rounds = argc > 1 ? atoi(argv[1]) : 0;
  for (int i = 0; i < rounds; ++i)
    keep_more();
  answer("ready");
  int letter;
  while ((letter = getchar()) != EOF && letter != 'q') {
    if (letter == 'a') {
      keep_more();
      answer("kept");
    } else if (letter == 'f') {
      while (count > 0)
        free(kept[--count]);
      answer("freed");
    } else if (letter == 'c' && fork() == 0) {
      keep_more();
      answer("child");
      pause();
    }
  }
  return 0;
}
