// Cost of a malloc+free pair of 64 bytes: bench_pair THREADS PAIRS prints nanoseconds per pair and thread, the
// least of 15 rounds, by the thread's own CPU clock.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long pairs;
static pthread_barrier_t barrier;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void* work(void* result) {
  double best = 1e18;
  for (int round = 0; round < 15; ++round) {
    pthread_barrier_wait(&barrier);
    const double begin = now();
    for (long i = 0; i < pairs; ++i) {
      void* volatile block = malloc(64);
      free(block);
    }
    const double took = (now() - begin) / (double)pairs;
    best = took < best ? took : best;
  }
  *(double*)result = best;
  return NULL;
}

int main(int argc, char** argv) {
  const int threads = argc > 1 ? atoi(argv[1]) : 1;
  pairs = argc > 2 ? atol(argv[2]) : 1000000;
  pthread_t ids[64];
  double results[64];
  if (threads < 1 || threads > 64)
    return 2;
  pthread_barrier_init(&barrier, NULL, (unsigned)threads);
  for (int i = 0; i < threads; ++i)
    pthread_create(&ids[i], NULL, work, &results[i]);
  double sum = 0;
  for (int i = 0; i < threads; ++i) {
    pthread_join(ids[i], NULL);
    sum += results[i];
  }
  printf("%.2f\n", sum / threads);
  return 0;
}
