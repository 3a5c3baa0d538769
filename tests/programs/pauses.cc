// Stops its parent, the profiler, and times what it does meanwhile.
//
//   pauses threads   three threads allocate for three seconds
//   pauses start     starts a program that ends at once
//   pauses forks     forks three children, one after the other, that allocate
//
// Prints the longest pause in milliseconds and the number of long ones.
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kLongMs = 700;

std::atomic<double> g_longest_ms{};
std::atomic<int> g_long_pauses{};

template <typename Work>
void Time(Work&& work) {
  const Clock::time_point start = Clock::now();
  work();
  const double ms =
      std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  for (double longest = g_longest_ms; ms > longest;)
    g_longest_ms.compare_exchange_weak(longest, ms);
  g_long_pauses += ms > kLongMs ? 1 : 0;
}

__attribute__((noinline)) void AllocateOnce() {
  void* block = nullptr;
  Time([&] { block = malloc(100); });
  Time([&] { block = realloc(block, 300); });
  Time([&] { free(block); });
}

void AllocateFor(std::chrono::milliseconds time) {
  const Clock::time_point end = Clock::now() + time;
  while (Clock::now() < end)
    AllocateOnce();
}

void RunThreads() {
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back(AllocateFor, std::chrono::seconds(3));
  for (std::thread& thread : threads)
    thread.join();
}

void StartProgram() {
  Time([] {
    pid_t child = -1;
    char name[] = "/bin/true";
    char* const arguments[] = {name, nullptr};
    if (posix_spawn(&child, name, nullptr, nullptr, arguments, environ) == 0)
      waitpid(child, nullptr, 0);
  });
}

void Fork(void (*work)()) {
  Time([work] {
    const pid_t child = fork();
    if (child == 0) {
      work();
      exit(0);
    }
    waitpid(child, nullptr, 0);
  });
}

}  // namespace

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "threads";
  AllocateOnce();
  const pid_t profiler = getppid();
  kill(profiler, SIGSTOP);
  if (strcmp(mode, "threads") == 0) {
    RunThreads();
  } else if (strcmp(mode, "start") == 0) {
    StartProgram();
  } else {
    for (int i = 0; i < 3; ++i)
      Fork([] { free(malloc(100)); });
  }
  kill(profiler, SIGCONT);
  printf("%.0f %d\n", g_longest_ms.load(), g_long_pauses.load());
}
