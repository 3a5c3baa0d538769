// argv[1] threads share argv[2] allocations of 100 bytes, freed at once, which begin when
// all threads are there; prints the milliseconds that they take. `rushed` allocates.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static pthread_barrier_t all_are_there;
static long allocations_of_each;

__attribute__((noinline)) char* rushed(long size) {
  char* block = malloc((size_t)size);
  block[0] = 1;
  return block;
}

static void* rush(void* argument) {
  pthread_barrier_wait(&all_are_there);
  for (long i = 0; i < allocations_of_each; ++i)
    free(rushed(100));
  return argument;
}

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

int main(int argc, char** argv) {
  const int count = argc > 1 ? atoi(argv[1]) : 10;
  const long allocations = argc > 2 ? atol(argv[2]) : 100000;
  allocations_of_each = allocations / count;
  pthread_t* threads = calloc((size_t)count, sizeof(*threads));
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 65536);
  pthread_barrier_init(&all_are_there, NULL, (unsigned)count + 1);
  for (int i = 0; i < count; ++i) {
    if (pthread_create(&threads[i], &small, rush, NULL) != 0)
      return 1;
  }
  const double begin = now_ms();
  pthread_barrier_wait(&all_are_there);
  for (int i = 0; i < count; ++i)
    pthread_join(threads[i], NULL);
  printf("%.1f\n", now_ms() - begin);
  return 0;
}
