// Threads that come and go while others free what they allocated; contents are checked. 8
// generations of 8 threads; `handed_over` allocates 8 * 8 * 500 blocks of 300 bytes, all
// freed by other threads. The 64 threads are called "handing_over".
#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

namespace {
std::mutex mutex;
std::vector<unsigned char*> shared;
std::atomic<int> errors;
}  // namespace

extern "C" __attribute__((noinline)) unsigned char* handed_over(int id) {
  auto* block = static_cast<unsigned char*>(malloc(300));
  memset(block, id, 300);
  return block;
}

static void Work(int id) {
  pthread_setname_np(pthread_self(), "handing_over");
  for (int i = 0; i < 500; ++i) {
    unsigned char* block = handed_over(id);
    unsigned char* other = nullptr;
    {
      const std::lock_guard<std::mutex> lock(mutex);
      shared.push_back(block);
      if (shared.size() > 50) {
        other = shared.front();
        shared.erase(shared.begin());
      }
    }
    if (other != nullptr) {
      for (int k = 1; k < 300; ++k)
        errors += other[k] != other[0];
      free(other);
    }
  }
}

int main() {
  for (int generation = 0; generation < 8; ++generation) {
    std::vector<std::thread> threads;
    for (int id = 0; id < 8; ++id)
      threads.emplace_back(Work, id);
    for (std::thread& thread : threads)
      thread.join();
  }
  for (unsigned char* block : shared)
    free(block);
  printf("errors %d\n", errors.load());
  return errors != 0;
}
