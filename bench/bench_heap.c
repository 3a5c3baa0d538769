// Cost of reporting to heapprofd/heap_profile.h: bench_heap THREADS [DEPTH] prints
// nanoseconds per pair of reportAllocation and reportFree and thread, the least of 15
// rounds, at DEPTH frames below main. THREADS 0: the same loop without the calls.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <heapprofd/heap_profile.h>

static uint32_t heap;
static int is_empty;
static int depth;
static pthread_barrier_t barrier;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

__attribute__((noinline)) static double measure(char* blocks) {
  const long pairs = 300000;
  double best = 1e18;
  for (int round = 0; round < 15; ++round) {
    pthread_barrier_wait(&barrier);
    const double begin = now();
    for (long i = 0; i < pairs; ++i) {
      char* volatile block = blocks + i % 64 * 64;
      if (is_empty)
        continue;
      AHeapProfile_reportAllocation(heap, (uintptr_t)block, 64);
      AHeapProfile_reportFree(heap, (uintptr_t)block);
    }
    const double took = (now() - begin) / (double)pairs;
    best = took < best ? took : best;
  }
  return best;
}

__attribute__((noinline)) static double descend(int left, char* blocks) {
  const double result = left <= 0 ? measure(blocks) : descend(left - 1, blocks);
  __asm__ volatile("" : : : "memory");
  return result;
}

static void* work(void* result) {
  char* blocks = malloc(64 * 64);
  *(double*)result = descend(depth, blocks);
  return NULL;
}

int main(int argc, char** argv) {
  const int wanted = argc > 1 ? atoi(argv[1]) : 1;
  depth = argc > 2 ? atoi(argv[2]) : 0;
  is_empty = wanted == 0;
  const int threads = is_empty ? 1 : wanted;
  pthread_t ids[64];
  double results[64];
  if (threads > 64)
    return 2;
  heap = AHeapProfile_registerHeap(AHeapInfo_create("bench"));
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
