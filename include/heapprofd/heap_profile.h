/* Heap profiling of custom allocators: tell the profiler what an allocator hands out and
 * takes back, and each allocator becomes a heap of its own in the profile, with stacks.
 *
 *   static uint32_t g_heap;  // once, e.g. at start:
 *   g_heap = AHeapProfile_registerHeap(AHeapInfo_create("com.example.arena"));
 *   // after every allocation:
 *   AHeapProfile_reportAllocation(g_heap, (uintptr_t)pointer, size);
 *   // before every free:
 *   AHeapProfile_reportFree(g_heap, (uintptr_t)pointer);
 *
 * Link with libheapprofd_client (pkg-config heapprofd-client, CMake heapprofd::client)
 * and run `heap_profile --all-heaps -- PROGRAM`. While nobody records, each call costs
 * one load and one branch. All functions may be called from any thread, none from a
 * signal handler.
 *
 * With HEAPPROFD_NOOP defined before the include, every function is an empty inline one
 * and no library is needed: for builds on systems that do not have it.
 *
 * Plain C11 and C++11. Names that begin with AHeap are those of Android's heap_profile.h
 * and mean the same. */
#ifndef HEAPPROFD_HEAP_PROFILE_H_
#define HEAPPROFD_HEAP_PROFILE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the longest name of a heap, with its terminating zero. */
#define HEAPPROFD_HEAP_NAME_SZ 64

#ifdef HEAPPROFD_NOOP
#define HEAPPROFD_API static inline
#else
#define HEAPPROFD_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct AHeapInfo AHeapInfo;
typedef struct AHeapProfileEnableCallbackInfo AHeapProfileEnableCallbackInfo;
typedef struct AHeapProfileDisableCallbackInfo AHeapProfileDisableCallbackInfo;

typedef void (*AHeapProfileEnableCallback)(void* data,
                                           const AHeapProfileEnableCallbackInfo* info);
typedef void (*AHeapProfileDisableCallback)(void* data,
                                            const AHeapProfileDisableCallbackInfo* info);

/* A new heap. `heap_name`: 1 to 63 bytes, best in reverse domain style. Returns NULL when
 * the name is empty or too long, or the process has 255 heaps already. */
HEAPPROFD_API AHeapInfo* AHeapInfo_create(const char* heap_name);

/* `callback` is called with `data` whenever a session begins to record this heap, before
 * the heap is marked enabled. Returns `info`; NULL when it is NULL or registered already.
 */
HEAPPROFD_API AHeapInfo* AHeapInfo_setEnabledCallback(AHeapInfo* info,
                                                      AHeapProfileEnableCallback callback,
                                                      void* data);

/* `callback` is called with `data` when a session that recorded this heap is over: from
 * the first report that finds it so, on that thread. Never in a forked child. */
HEAPPROFD_API AHeapInfo* AHeapInfo_setDisabledCallback(
    AHeapInfo* info, AHeapProfileDisableCallback callback, void* data);

/* In the enabled callback: sampling interval of this heap in this session, bytes. */
HEAPPROFD_API uint64_t AHeapProfileEnableCallbackInfo_getSamplingInterval(
    const AHeapProfileEnableCallbackInfo* info);

/* The heap's id for the functions below, > 0; a session that is running records it from
 * now on. Returns 0, which all functions below accept and ignore, for NULL. */
HEAPPROFD_API uint32_t AHeapProfile_registerHeap(AHeapInfo* info);

/* A block of `size` bytes was allocated. `alloc_id` is the block's address, or any number
 * that no other live block of this heap has. Returns true when it became a sample. */
HEAPPROFD_API bool AHeapProfile_reportAllocation(uint32_t heap_id,
                                                 uint64_t alloc_id,
                                                 uint64_t size);

/* The same for a program that samples by itself: always recorded, and `size` is the
 * number of bytes that this sample stands for. */
HEAPPROFD_API bool AHeapProfile_reportSample(uint32_t heap_id,
                                             uint64_t alloc_id,
                                             uint64_t size);

/* The block is about to be freed. Unknown blocks are ignored. A block that is reported
 * again without having been freed counts as freed before. */
HEAPPROFD_API void AHeapProfile_reportFree(uint32_t heap_id, uint64_t alloc_id);

/* The rest is not part of Android's interface. */

/* Between begin and end the calling thread gets memory from which `heap_id` will serve
 * its own blocks, e.g. a pool's chunk from malloc. These allocations are recorded in no
 * other heap, so that no byte is counted twice. While `heap_id` is not recorded they are
 * recorded as usual. Pass what begin returned to end, on the same thread, on every way
 * out. */
HEAPPROFD_API uint32_t heapprofd_nested_begin(uint32_t heap_id);
HEAPPROFD_API void heapprofd_nested_end(uint32_t scope);

/* Until the matching pop, samples of the calling thread, malloc's too, carry this label,
 * e.g. "tenant" = "acme". At most 4 at once; key up to 31 bytes, value up to 91, longer
 * ones are cut. At most 4095 different pairs in a process: meant for kinds of work, not
 * for request ids. */
HEAPPROFD_API void heapprofd_label_push(const char* key, const char* value);
HEAPPROFD_API void heapprofd_label_pop(void);

/* Marks this moment in the trace. `name`: up to 63 bytes, longer ones are cut. */
HEAPPROFD_API void heapprofd_mark(const char* name);

/* A dump of all heaps of this process as of this moment, beside the one at the end. */
HEAPPROFD_API void heapprofd_dump_now(void);

#ifdef HEAPPROFD_NOOP

HEAPPROFD_API AHeapInfo* AHeapInfo_create(const char* heap_name) {
  (void)heap_name;
  return NULL;
}

HEAPPROFD_API AHeapInfo* AHeapInfo_setEnabledCallback(AHeapInfo* info,
                                                      AHeapProfileEnableCallback callback,
                                                      void* data) {
  (void)callback;
  (void)data;
  return info;
}

HEAPPROFD_API AHeapInfo* AHeapInfo_setDisabledCallback(
    AHeapInfo* info, AHeapProfileDisableCallback callback, void* data) {
  (void)callback;
  (void)data;
  return info;
}

HEAPPROFD_API uint64_t AHeapProfileEnableCallbackInfo_getSamplingInterval(
    const AHeapProfileEnableCallbackInfo* info) {
  (void)info;
  return 0;
}

HEAPPROFD_API uint32_t AHeapProfile_registerHeap(AHeapInfo* info) {
  (void)info;
  return 0;
}

HEAPPROFD_API bool AHeapProfile_reportAllocation(uint32_t heap_id,
                                                 uint64_t alloc_id,
                                                 uint64_t size) {
  (void)heap_id;
  (void)alloc_id;
  (void)size;
  return false;
}

HEAPPROFD_API bool AHeapProfile_reportSample(uint32_t heap_id,
                                             uint64_t alloc_id,
                                             uint64_t size) {
  (void)heap_id;
  (void)alloc_id;
  (void)size;
  return false;
}

HEAPPROFD_API void AHeapProfile_reportFree(uint32_t heap_id, uint64_t alloc_id) {
  (void)heap_id;
  (void)alloc_id;
}

HEAPPROFD_API uint32_t heapprofd_nested_begin(uint32_t heap_id) {
  (void)heap_id;
  return 0;
}

HEAPPROFD_API void heapprofd_nested_end(uint32_t scope) {
  (void)scope;
}

HEAPPROFD_API void heapprofd_label_push(const char* key, const char* value) {
  (void)key;
  (void)value;
}

HEAPPROFD_API void heapprofd_label_pop(void) {}

HEAPPROFD_API void heapprofd_mark(const char* name) {
  (void)name;
}

HEAPPROFD_API void heapprofd_dump_now(void) {}

#endif /* HEAPPROFD_NOOP */

#ifdef __cplusplus
} /* extern "C" */
#endif

#undef HEAPPROFD_API

#endif /* HEAPPROFD_HEAP_PROFILE_H_ */
