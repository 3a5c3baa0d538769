// Calls allocation functions as it is told to, a known number of times, and says where in files they are:
// probed [THREADS]. Commands on standard input: "rounds N" of each thread, "fork N" rounds of a child, "mallocs N" of
// malloc alone, "quit". Each is answered by a line. A round is ALLOCATIONS 6 (malloc twice) and five frees.
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kMaxThreads = 16 };
static int threads = 1;
static long wanted;
static pthread_barrier_t begin, end;

static void round_of_calls(void) {
  unsigned char* p = malloc(100);
  memset(p, 1, 100);
  p = realloc(p, 200);
  unsigned char* q = calloc(3, 30);
  void* m = memalign(64, 40);
  void* x = NULL;
  const int error = posix_memalign(&x, 128, 50);
  void* e = malloc(5000);
  if (p[99] != 1 || q[89] != 0 || ((uintptr_t)m & 63) != 0 || error != 0 || ((uintptr_t)x & 127) != 0 || e == NULL)
    abort();
  memset(q, 7, 90);
  free(p);
  free(q);
  free(m);
  free(x);
  free(e);
}

static void* work(void* unused) {
  for (;;) {
    pthread_barrier_wait(&begin);
    for (long i = 0; i < wanted; ++i)
      round_of_calls();
    pthread_barrier_wait(&end);
  }
  return unused;
}

static void run_rounds(long count) {
  wanted = count;
  pthread_barrier_wait(&begin);
  pthread_barrier_wait(&end);
}

static int run_child(long count) {
  const pid_t child = fork();
  if (child == 0) {
    for (long i = 0; i < count; ++i)
      round_of_calls();
    _exit(7);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

// Where a function is: "place NAME OFFSET FILE".
static void print_place(const char* name, const void* function) {
  FILE* maps = fopen("/proc/self/maps", "r");
  char line[8192], path[4096];
  unsigned long low, high, offset;
  const unsigned long at = (unsigned long)function;
  while (fgets(line, sizeof(line), maps)) {
    if (sscanf(line, "%lx-%lx %*s %lx %*s %*s %4095s", &low, &high, &offset, path) == 4 && at >= low && at < high)
      printf("place %s %lu %lu %s\n", name, offset + at - low, at, path);
  }
  fclose(maps);
}

int main(int count, char** arguments) {
  threads = count > 1 ? atoi(arguments[1]) : 1;
  pthread_barrier_init(&begin, NULL, (unsigned)threads + 1);
  pthread_barrier_init(&end, NULL, (unsigned)threads + 1);
  pthread_t thread;
  for (int i = 0; i < threads && i < kMaxThreads; ++i)
    pthread_create(&thread, NULL, work, NULL);
  print_place("malloc", (const void*)&malloc);
  print_place("free", (const void*)&free);
  print_place("calloc", (const void*)&calloc);
  print_place("realloc", (const void*)&realloc);
  print_place("memalign", (const void*)&memalign);
  print_place("posix_memalign", (const void*)&posix_memalign);
  puts("ready");
  fflush(stdout);
  static char buffer[65536], line[256];
  setvbuf(stdin, buffer, _IOFBF, sizeof(buffer));
  char command[32];
  long number = 0;
  while (fgets(line, sizeof(line), stdin) && sscanf(line, "%31s %ld", command, &number) >= 1) {
    if (strcmp(command, "quit") == 0)
      return 21;
    int result = 0;
    if (strcmp(command, "rounds") == 0)
      run_rounds(number);
    else if (strcmp(command, "fork") == 0)
      result = run_child(number);
    else
      for (long i = 0; i < number; ++i)
        free(malloc(100));
    printf("done %d\n", result);
    fflush(stdout);
  }
  return 22;
}
