// Everything at once that makes attaching difficult: threads that allocate and check what
// they hold, forks, dlopen and dlclose, a profiling timer, short threads, sleepers that
// must not see EINTR. Runs for argv[1] seconds or until SIGTERM, without dlopen when
// there is an argv[2]; ends with 1 when anything was wrong, and prints what.
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

namespace {

std::atomic<long> operations{0};
std::atomic<long> corrupted{0};
std::atomic<long> failed_children{0};
std::atomic<long> interrupted{0};

struct Block {
  unsigned char* bytes = nullptr;
  size_t size = 0;
};

unsigned char* Allocate(unsigned kind, size_t size) {
  void* bytes = nullptr;
  switch (kind % 4) {
    case 0:
      return static_cast<unsigned char*>(calloc(1, size));
    case 1:
      return posix_memalign(&bytes, 64, size) == 0 ? static_cast<unsigned char*>(bytes)
                                                   : nullptr;
    case 2:
      return static_cast<unsigned char*>(aligned_alloc(32, (size + 31) / 32 * 32));
    default:
      return static_cast<unsigned char*>(malloc(size));
  }
}

void Churn(unsigned id) {
  unsigned random = id * 7919 + 1;
  Block blocks[64];
  while (true) {
    random = random * 1103515245 + 12345;
    const unsigned index = random >> 16 & 63;
    Block& block = blocks[index];
    const auto mark = static_cast<unsigned char>(index ^ id);
    if (block.bytes == nullptr) {
      block.size = (random >> 8) % 3000 + 1;
      block.bytes = Allocate(random, block.size);
      memset(block.bytes, mark, block.size);
    } else {
      if ((random & 1) != 0)
        block.bytes = static_cast<unsigned char*>(realloc(block.bytes, block.size + 50));
      for (size_t i = 0; i < block.size; i += 97)
        corrupted += block.bytes[i] != mark;
      free(block.bytes);
      block.bytes = nullptr;
    }
    ++operations;
  }
}

void Fork() {
  while (true) {
    const pid_t pid = fork();
    if (pid == 0) {
      for (size_t i = 0; i < 100; ++i)
        free(malloc(i * 10));
      _exit(std::string(5000, 'x').size() == 5000 ? 0 : 1);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    failed_children += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    usleep(500);
  }
}

void Load() {
  while (true) {
    if (void* library = dlopen("libz.so.1", RTLD_NOW))
      dlclose(library);
    usleep(100);
  }
}

// No signal of the program reaches this thread: whatever interrupts it is our doing.
void Sleep() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  const int epoll = epoll_create1(0);
  while (true) {
    epoll_event event;
    interrupted += epoll_wait(epoll, &event, 1, 5) < 0 && errno == EINTR;
    const timespec pause{.tv_sec = 0, .tv_nsec = 2'000'000};
    interrupted += nanosleep(&pause, nullptr) != 0;
  }
}

void StartThreads() {
  while (true) {
    std::thread([] { free(malloc(1000)); }).join();
    usleep(50);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int seconds = argc > 1 ? atoi(argv[1]) : 10;

  sigset_t end;
  sigemptyset(&end);
  sigaddset(&end, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &end, nullptr);

  struct sigaction action {};

  action.sa_handler = [](int) {};
  action.sa_flags = SA_RESTART;
  sigaction(SIGPROF, &action, nullptr);
  const itimerval interval{.it_interval = {.tv_sec = 0, .tv_usec = 1000},
                           .it_value = {.tv_sec = 0, .tv_usec = 1000}};
  setitimer(ITIMER_PROF, &interval, nullptr);
  for (unsigned id = 0; id < 3; ++id)
    std::thread(Churn, id).detach();
  for (void (*work)() : {Fork, Sleep, StartThreads})
    std::thread(work).detach();
  if (argc <= 2)  // a statically linked program can load no libraries
    std::thread(Load).detach();
  puts("ready");
  fflush(stdout);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  const timespec pause{.tv_sec = 0, .tv_nsec = 100'000'000};
  while (std::chrono::steady_clock::now() < deadline &&
         sigtimedwait(&end, nullptr, &pause) != SIGTERM) {
  }
  printf("operations %ld corrupted %ld failed_children %ld interrupted %ld\n",
         operations.load(), corrupted.load(), failed_children.load(), interrupted.load());
  fflush(stdout);
  _exit(corrupted != 0 || failed_children != 0 || interrupted != 0);
}
