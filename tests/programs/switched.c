// A long-running program with two heaps, of which one wants to be told when it is
// recorded. A letter at a time on standard input, each answered by a line:
//   a  reports 100 live allocations of 50 bytes in each heap
//   l  the same under the label kind=late, after one that was pushed as the program began
//   d  asks for a dump
//   m  keeps 100 blocks of 50 bytes from malloc
//   s  says how often the callbacks were called, the last interval, and how many reports
//      became samples
//   c  forks a child that does `a` and ends
//   p  forks a child that does `a` once, quietly, and then all that this program would do
//   q  ends
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <heapprofd/heap_profile.h>

static uint32_t told_heap;
static uint32_t silent_heap;
static atomic_int enabled_calls;
static atomic_int disabled_calls;
static atomic_ulong last_interval;
static uint64_t next_id = 1;
static int samples;

static void on_enabled(void* data, const AHeapProfileEnableCallbackInfo* info) {
  atomic_store(&last_interval, AHeapProfileEnableCallbackInfo_getSamplingInterval(info));
  atomic_fetch_add((atomic_int*)data, 1);
}

static void on_disabled(void* data, const AHeapProfileDisableCallbackInfo* info) {
  (void)info;
  atomic_fetch_add((atomic_int*)data, 1);
}

__attribute__((noinline)) void reports(void) {
  for (int i = 0; i < 100; ++i) {
    samples += AHeapProfile_reportAllocation(told_heap, next_id, 50);
    samples += AHeapProfile_reportAllocation(silent_heap, next_id++, 50);
  }
}

static void* volatile kept;

__attribute__((noinline)) void mallocs(void) {
  for (int i = 0; i < 100; ++i)
    kept = malloc(50);
}

static void answer(const char* text) {
  puts(text);
  fflush(stdout);
}

int main(void) {
  setvbuf(stdin, NULL, _IONBF, 0);
  AHeapInfo* told = AHeapInfo_create("com.example.told");
  AHeapInfo_setEnabledCallback(told, on_enabled, &enabled_calls);
  AHeapInfo_setDisabledCallback(told, on_disabled, &disabled_calls);
  told_heap = AHeapProfile_registerHeap(told);
  silent_heap = AHeapProfile_registerHeap(AHeapInfo_create("com.example.silent"));
  heapprofd_label_push("kind", "early");
  answer("ready");
  int letter;
  while ((letter = getchar()) != EOF && letter != 'q') {
    if (letter == 'a') {
      heapprofd_label_pop();
      reports();
      heapprofd_label_push("kind", "early");
      answer("reported");
    } else if (letter == 'l') {
      heapprofd_label_push("kind", "late");
      reports();
      heapprofd_label_pop();
      answer("reported");
    } else if (letter == 'm') {
      mallocs();
      answer("kept");
    } else if (letter == 'd') {
      heapprofd_dump_now();
      answer("asked");
    } else if (letter == 's') {
      printf("%d %d %lu %d\n", enabled_calls, disabled_calls, last_interval, samples);
      fflush(stdout);
    } else if (letter == 'p') {
      const pid_t child = fork();
      if (child == 0) {
        reports();
        answer("forked");
      } else {
        waitpid(child, NULL, 0);
        return 0;
      }
    } else if (letter == 'c') {
      const pid_t child = fork();
      if (child == 0) {
        reports();
        _exit(0);
      }
      waitpid(child, NULL, 0);
      answer("forked");
    }
  }
  return 0;
}
