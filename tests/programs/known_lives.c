// Blocks whose sizes and lives are known: each function's all live in one way.
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum { kBlocks = 1000 };

static char* volatile blocks[kBlocks];

static void free_all(void) {
  for (int i = 0; i < kBlocks; ++i)
    free(blocks[i]);
}

static void* free_of_another(void* unused) {
  free_all();
  return unused;
}

__attribute__((noinline)) static void temporary(void) {
  for (int i = 0; i < kBlocks; ++i) {
    blocks[i] = malloc(100);
    free(blocks[i]);
  }
}

__attribute__((noinline)) static void handed_over(void) {
  for (int i = 0; i < kBlocks; ++i)
    blocks[i] = malloc(300);
  pthread_t thread;
  pthread_create(&thread, NULL, free_of_another, NULL);
  pthread_join(thread, NULL);
}

// 5 ms at least.
__attribute__((noinline)) static void long_lived(void) {
  for (int i = 0; i < kBlocks; ++i)
    blocks[i] = malloc(700);
  const struct timespec pause = {.tv_sec = 0, .tv_nsec = 5000000};
  nanosleep(&pause, NULL);
  free_all();
}

__attribute__((noinline)) static void kept(void) {
  for (int i = 0; i < kBlocks; ++i)
    blocks[i] = malloc(i % 2 == 0 ? 40 : 5000);
}

int main(void) {
  temporary();
  handed_over();
  long_lived();
  kept();
  return 0;
}
