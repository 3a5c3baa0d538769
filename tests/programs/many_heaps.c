// As many heaps as there can be, with the longest names, used by several threads at once:
// heap number n (from 1) gets n blocks of 16 bytes from each of 8 threads, and another
// thread frees those of every second heap. A label is on every second block.
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <heapprofd/heap_profile.h>

enum { kHeaps = 255, kThreads = 8 };

static uint32_t heaps[kHeaps];

static uint64_t block_number(int thread, int heap, int block) {
  return 0x7f0000000000 + (uint64_t)((thread * kHeaps + heap) * kHeaps + block) * 16;
}

__attribute__((noinline)) int allocates(int thread, int heap) {
  int sampled = 0;
  for (int block = 0; block <= heap; ++block) {
    char value[16];
    snprintf(value, sizeof(value), "thread %d", thread);
    if (block % 2 == 0)
      heapprofd_label_push("thread", value);
    sampled +=
        AHeapProfile_reportAllocation(heaps[heap], block_number(thread, heap, block), 16);
    if (block % 2 == 0)
      heapprofd_label_pop();
  }
  return sampled;
}

static void* work(void* argument) {
  const int thread = (int)(intptr_t)argument;
  for (int heap = 0; heap < kHeaps; ++heap)
    allocates(thread, heap);
  return NULL;
}

static void* give_back(void* argument) {
  const int thread = (int)(intptr_t)argument;
  for (int heap = 1; heap < kHeaps; heap += 2) {
    for (int block = 0; block <= heap; ++block)
      AHeapProfile_reportFree(heaps[heap], block_number(thread, heap, block));
  }
  return NULL;
}

static void in_threads(void* (*function)(void*)) {
  pthread_t threads[kThreads];
  for (intptr_t i = 0; i < kThreads; ++i)
    pthread_create(&threads[i], NULL, function, (void*)((i + 1) % kThreads));
  for (int i = 0; i < kThreads; ++i)
    pthread_join(threads[i], NULL);
}

int main(void) {
  char name[HEAPPROFD_HEAP_NAME_SZ + 1];
  memset(name, 'n', sizeof(name) - 1);
  name[sizeof(name) - 1] = 0;
  const int refuses_long = AHeapInfo_create(name) == NULL;
  name[sizeof(name) - 2] = 0;
  for (int i = 0; i < kHeaps; ++i) {
    char number[4];
    snprintf(number, sizeof(number), "%03d", i + 1);
    memcpy(name, number, 3);
    heaps[i] = AHeapProfile_registerHeap(AHeapInfo_create(name));
  }
  const int refuses_more = AHeapInfo_create("one more") == NULL;
  in_threads(work);
  in_threads(give_back);
  printf("last id %u, refuses %d %d\n", heaps[kHeaps - 1], refuses_long, refuses_more);
  return 0;
}
