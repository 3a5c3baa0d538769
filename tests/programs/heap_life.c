// A heap through fork and the session's end. It says "ready" once its heap is recorded
// and a forked child has used it, then reports until the session is over ("disabled 1")
// or a minute has passed, and writes that to a file. Usage: heap_life [FILE]
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <heapprofd/heap_profile.h>

static uint32_t heap;
static volatile int disabled_calls;

static void on_disabled(void* data, const AHeapProfileDisableCallbackInfo* info) {
  (void)data;
  (void)info;
  ++disabled_calls;
}

__attribute__((noinline)) int in_parent(uint64_t number) {
  return AHeapProfile_reportAllocation(heap, number, 1000) ? 1 : 2;
}

__attribute__((noinline)) int in_child(uint64_t number) {
  return AHeapProfile_reportAllocation(heap, number, 300) ? 1 : 2;
}

static int child(void) {
  for (uint64_t i = 0; i < 100; ++i)
    in_child(i);
  AHeapProfile_reportFree(heap, 500);  // the parent's: means nothing here
  return disabled_calls;
}

int main(int argc, char** argv) {
  signal(SIGINT, SIG_IGN);
  heap = AHeapProfile_registerHeap(AHeapInfo_setDisabledCallback(
      AHeapInfo_create("com.example.life"), on_disabled, NULL));
  for (uint64_t i = 0; i < 1000; ++i)
    in_parent(i);
  const pid_t pid = fork();
  if (pid == 0)
    _exit(child());
  int status = 0;
  if (waitpid(pid, &status, 0) != pid || status != 0)
    return 1;
  printf("ready\n");
  fflush(stdout);
  if (argc < 2)
    return 0;
  const struct timespec pause = {.tv_nsec = 1000000};
  for (uint64_t i = 0; i < 60000 && disabled_calls == 0; ++i) {
    in_parent(i % 1000);
    nanosleep(&pause, NULL);
  }
  FILE* out = fopen(argv[1], "w");
  fprintf(out, "disabled %d\n", disabled_calls);
  fclose(out);
  return 0;
}
