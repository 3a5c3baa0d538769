// Keeps 1000 blocks of 1000 bytes (`kept_block`) and ends in the way its argument names;
// "grow": says "ready" and keeps one each millisecond. It frees nothing.
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

__attribute__((noinline)) void* kept_block(void) {
  void* volatile block = calloc(1, 1000);
  return block;
}

// main's frame is on another page of the stack than those of its callees.
__attribute__((noinline)) void keep_blocks(void) {
  volatile char pages[8192];
  pages[0] = 0;
  for (int i = 0; i < 1000; ++i) {
    void* volatile keep = kept_block();
    (void)keep;
  }
  (void)pages[0];
}

int main(int argc, char** argv) {
  const char* way = argc > 1 ? argv[1] : "return";
  keep_blocks();
  if (strcmp(way, "return") == 0)
    return 7;
  if (strcmp(way, "exit") == 0)
    exit(7);
  if (strcmp(way, "_exit") == 0)
    _exit(7);
  if (strcmp(way, "quick_exit") == 0)
    quick_exit(7);
  if (strcmp(way, "abort") == 0)
    abort();
  if (strcmp(way, "sigkill") == 0)
    raise(SIGKILL);
  if (strcmp(way, "sigsegv") == 0)
    *(volatile int*)16 = 1;
  if (strcmp(way, "grow") == 0) {
    const struct timespec pause = {.tv_nsec = 1000000};
    puts("ready");
    fflush(stdout);
    for (;;) {
      kept_block();
      nanosleep(&pause, NULL);
    }
  }
  if (strcmp(way, "wait") == 0) {
    puts("waiting");
    fflush(stdout);
    for (;;)
      pause();
  }
  return 99;
}
