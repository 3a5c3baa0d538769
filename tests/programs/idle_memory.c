// Memory of which it is known what is touched, for some seconds: idle_memory SECONDS [fork]. It says how many bytes of each function's
// blocks lie on pages that nobody touches, then touches the others over and over.
// `fork`: everything is shared with a child meanwhile. At SIGUSR1 it takes as much memory again that it does not touch.
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
  kPage = 4096,
  kCold = 48 << 20,
  kStriped = 32 << 20,
  kSmall = 160,
  kSmalls = 50000
};

__attribute__((noinline)) char* Cold(void) {
  return memset(malloc(kCold), 1, kCold);
}

// One page of three is touched.
__attribute__((noinline)) char* Striped(void) {
  return memset(malloc(kStriped), 1, kStriped);
}

__attribute__((noinline)) char* Hot(void) {
  return memset(malloc(kStriped), 1, kStriped);
}

// Nobody touches these, but what lies on a page of theirs is touched as well: none of them does.
__attribute__((noinline)) void* Small(void* last) {
  void** block = memset(malloc(kSmall), 1, kSmall);
  *block = last;
  return block;
}

__attribute__((noinline)) char* Unwritten(void) {
  char* volatile block = malloc(kStriped);
  return block;
}

static volatile sig_atomic_t is_asked;

static void Ask(int signal) {
  is_asked = signal;
}

static int IsTouched(const char* page) {
  return (uintptr_t)page / kPage % 3 == 0;
}

static size_t IdleOfStriped(const char* block) {
  size_t idle = 0;
  for (size_t i = 0; i < kStriped; ++i)
    idle += IsTouched(block + i) ? 0 : 1;
  return idle;
}

int main(int argc, char** argv) {
  signal(SIGUSR1, Ask);
  char* volatile cold = Cold();
  char* volatile more = cold;
  void* volatile small = NULL;
  for (int i = 0; i < kSmalls; ++i)
    small = Small(small);
  char* volatile striped = Striped();
  char* volatile hot = Hot();
  char* volatile unwritten = Unwritten();
  printf("%d %zu\n", kCold, IdleOfStriped(striped));
  fflush(stdout);
  pid_t child = argc > 2 ? fork() : 0;
  if (argc > 2 && child == 0)
    pause();
  const time_t end = time(NULL) + atoi(argv[1]);
  volatile char sum = 0;
  while (time(NULL) < end) {
    for (size_t i = 0; i < kStriped; i += kPage) {
      if (IsTouched(striped + i))
        sum = (char)(sum + striped[i]);
      ++hot[i];
    }
    ++hot[kStriped - 1];
    if (IsTouched(striped + kStriped - 1))
      sum = (char)(sum + striped[kStriped - 1]);
    if (is_asked) {
      is_asked = 0;
      more = Cold();
    }
  }
  if (child > 0) {
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
  }
  return cold == NULL || more == NULL || small == NULL || unwritten == NULL;
}
