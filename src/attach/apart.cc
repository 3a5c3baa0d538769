#include "attach/apart.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

#include "attach/traced_thread.h"
#include "base/clock.h"
#include "base/quiet_thread.h"

namespace heapprofd {
namespace {

constexpr std::chrono::milliseconds kBetween{5};
constexpr uint64_t kPatienceNs = 20'000'000'000;  // longer than all waits in there
constexpr int kMaxAbandoned = 16;

std::atomic<int> g_abandoned = 0;
thread_local bool t_is_running = false;

class Work {
 public:
  explicit Work(std::function<void()> function) : function_(std::move(function)) {}

  // On the new thread.
  void Run() {
    function_();
    function_ = nullptr;  // what it holds may be waited for
    TracedThread::ReleaseStragglers();
    const std::lock_guard lock(mutex_);
    is_done_ = true;
    g_abandoned -= is_abandoned_ ? 1 : 0;
    done_.notify_all();
  }

  bool Await(const std::function<void()>& between) {
    const uint64_t deadline = MonotonicNs() + kPatienceNs;
    std::unique_lock lock(mutex_);
    while (!done_.wait_for(lock, kBetween, [this] { return is_done_; })) {
      if (MonotonicNs() > deadline) {
        is_abandoned_ = true;
        ++g_abandoned;
        return false;
      }
      lock.unlock();
      between();
      lock.lock();
    }
    return true;
  }

 private:
  std::function<void()> function_;
  std::mutex mutex_;
  std::condition_variable done_;
  bool is_done_ = false;
  bool is_abandoned_ = false;
};

}  // namespace

bool IsRunningApart() {
  return t_is_running;
}

bool RunApart(std::function<void()> work, const std::function<void()>& between) {
  if (t_is_running || g_abandoned >= kMaxAbandoned)
    return false;
  const auto shared = std::make_shared<Work>(std::move(work));
  pthread_t thread{};
  if (!StartQuietThread([shared] { shared->Run(); }, &thread))
    return false;
  t_is_running = true;
  const bool is_done = shared->Await(between);
  t_is_running = false;
  if (is_done)
    pthread_join(thread, nullptr);
  else
    pthread_detach(thread);
  return is_done;
}

}  // namespace heapprofd
