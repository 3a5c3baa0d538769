// Usage: malloc_rules ROUNDS: prints "ready", and for each line of standard input, so
// many at most, how the malloc family keeps its rules, then "done". What happens before
// main and behind it is said there.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rules.h"

// dprintf allocates nothing.
void holds(const char* rule, int is_kept) {
  dprintf(STDOUT_FILENO, "%s: %d\n", rule, is_kept != 0);
}

void observe(const char* question, long answer) {
  dprintf(STDOUT_FILENO, "%s? %ld\n", question, answer);
}

static char* g_early;   // allocated before any library is initialized
static char* g_before;  // allocated before main

static int works(void) {
  char* block = calloc(1, 100000);
  int is_clear = block != NULL && block[99999] == 0;
  block = realloc(block, 10);
  is_clear &= block != NULL && block[9] == 0;
  free(block);
  return is_clear;
}

#ifdef __GLIBC__  // musl has no such array
static void before_libraries(int argc, char** argv, char** environment) {
  (void)argc, (void)argv, (void)environment;
  g_early = malloc(1000);
  memset(g_early, 3, 1000);
  holds("blocks before the libraries' constructors", works());
}

__attribute__((section(".preinit_array"), used)) static void (*const g_preinit)(
    int, char**, char**) = before_libraries;
#endif

__attribute__((constructor)) static void before_main(void) {
  g_before = malloc(1000);
  memset(g_before, 4, 1000);
  holds("blocks before main", works());
}

__attribute__((destructor)) static void after_exit(void) {
  holds("blocks in destructors", works() && g_before[999] == 4);
  free(g_before);
}

static void at_exit(void) {
  holds("blocks in exit handlers", works());
  if (g_early != NULL)
    holds("blocks from before everything", g_early[999] == 3);
  g_early = realloc(g_early, 5000);
  free(g_early);
}

int main(int argc, char** argv) {
  static char buffer[16];
  setvbuf(stdin, buffer, _IOFBF, sizeof(buffer));
  atexit(at_exit);
  dprintf(STDOUT_FILENO, "ready\n");
  for (int rounds = argc > 1 ? atoi(argv[1]) : 0; rounds > 0; --rounds) {
    if (getchar() == EOF)
      break;
    value_rules();
    life_rules();
    dprintf(STDOUT_FILENO, "done\n");
  }
  return 0;
}
