// Does what it is told on standard input, a letter at a time, and answers each with a line:
//   a  keeps 1000 more blocks of 1000 bytes (`kept_block`)
//   f  frees all kept blocks
//   c  forks a child that keeps 1000 blocks and waits until this program ends
//   t  allocates and frees a million times and answers with the CPU time of that, in us
//   q  ends
// With a number as its argument it does `a` that often by itself, then waits for the end
// of its input.
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
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

static long cpu_us(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000L +
         usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
}

static long time_of_pairs(void) {
  const long begin = cpu_us();
  for (int i = 0; i < 1000000; ++i) {
    void* volatile block = malloc(100);
    free(block);
  }
  return cpu_us() - begin;
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
    } else if (letter == 't') {
      printf("%ld\n", time_of_pairs());
      fflush(stdout);
    } else if (letter == 'c' && fork() == 0) {
      keep_more();
      answer("child");
      pause();
    }
  }
  return 0;
}
