// Labels, marks, dumps on request and nested heaps, with known answers.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <heapprofd/heap_profile.h>

static uint32_t pool_heap;
static int enabled_calls;
static uint64_t enabled_interval;

static void on_enabled(void* data, const AHeapProfileEnableCallbackInfo* info) {
  ++*(int*)data;
  enabled_interval = AHeapProfileEnableCallbackInfo_getSamplingInterval(info);
}

__attribute__((noinline)) void* keeps(size_t size) {
  void* volatile block = malloc(size);
  return block;
}

// A pool that takes a chunk of 64 KiB from malloc and serves 16 blocks of 4000 bytes.
__attribute__((noinline)) char* takes_chunk(void) {
  const uint32_t scope = heapprofd_nested_begin(pool_heap);
  char* volatile chunk = malloc(65536);
  heapprofd_nested_end(scope);
  return chunk;
}

__attribute__((noinline)) void serves(char* chunk) {
  for (int i = 0; i < 16; ++i)
    AHeapProfile_reportAllocation(pool_heap, (uintptr_t)(chunk + i * 4000), 4000);
}

__attribute__((noinline)) void reports_samples(void) {
  for (int i = 1; i <= 10; ++i)
    AHeapProfile_reportSample(pool_heap, (uint64_t)i, 1000000);
}

__attribute__((noinline)) void labelled(void) {
  heapprofd_label_pop();  // of an empty stack: nothing
  for (int i = 0; i < 100; ++i) {
    heapprofd_label_push("tenant", i % 4 == 0 ? "acme" : "globex");
    keeps(100);
    heapprofd_label_push("request", "query");
    keeps(1000);
    heapprofd_label_pop();
    heapprofd_label_pop();
  }
  for (int i = 0; i < 6; ++i)
    heapprofd_label_push("level", "123456" + i);
  keeps(77);
  for (int i = 0; i < 6; ++i)
    heapprofd_label_pop();
  keeps(55);
}

int main(void) {
  AHeapInfo* info = AHeapInfo_setEnabledCallback(AHeapInfo_create("com.example.pool"),
                                                 on_enabled, &enabled_calls);
  pool_heap = AHeapProfile_registerHeap(info);
  heapprofd_mark("before the pool");
  serves(takes_chunk());
  heapprofd_dump_now();
  heapprofd_mark("after the pool");
  reports_samples();
  labelled();
  const int refuses = AHeapInfo_create("") == NULL && AHeapInfo_create(NULL) == NULL &&
                      AHeapProfile_registerHeap(NULL) == 0 &&
                      AHeapInfo_setEnabledCallback(info, NULL, NULL) == NULL &&
                      !AHeapProfile_reportAllocation(0, 1, 1) &&
                      !AHeapProfile_reportAllocation(100000, 1, 1);
  printf("enabled %d interval %llu refuses %d\n", enabled_calls,
         (unsigned long long)enabled_interval, refuses);
  return 0;
}
