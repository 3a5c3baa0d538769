// A process of argv[1] threads that allocate now and then. With an argv[2] the main
// thread has ended, so that only a zombie has the process's id. SIGTERM ends it with 0.
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

void* Live(void*) {
  for (unsigned i = 1;; ++i) {
    const size_t size = 100 + i % 1000;
    char* block = static_cast<char*>(malloc(size));
    memset(block, 'x', size);
    usleep(20'000);
    if (block[size - 1] != 'x')
      abort();
    free(block);
  }
}

void* WaitForEnd(void*) {
  puts("ready");
  fflush(stdout);
  sigset_t end;
  sigemptyset(&end);
  sigaddset(&end, SIGTERM);
  int signal = 0;
  sigwait(&end, &signal);
  _exit(0);
}

void Start(void* (*work)(void*)) {
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 65536);
  pthread_t thread;
  if (pthread_create(&thread, &small, work, nullptr) != 0)
    abort();
  pthread_attr_destroy(&small);
}

}  // namespace

int main(int argc, char** argv) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  const int count = argc > 1 ? atoi(argv[1]) : 10;
  for (int i = 1; i < count; ++i)
    Start(Live);
  if (argc > 2) {
    Start(WaitForEnd);
    pthread_exit(nullptr);
  }
  WaitForEnd(nullptr);
}
