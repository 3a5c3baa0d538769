#include "attach/apart.h"

#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "attach/traced_thread.h"
#include "base/clock.h"
#include "base/files/proc_files.h"
#include "base/quiet_thread.h"

namespace heapprofd {
namespace {

constexpr std::chrono::milliseconds kBetween{5};
// Work that has not come to an end: each has a thread, and made others wait.
constexpr size_t kMaxAbandonedOfOther = 1;    // of a user who is not ours
constexpr size_t kMaxAbandonedElsewhere = 4;  // of all in other user name spaces
constexpr size_t kMaxAbandoned = 16;

thread_local bool t_is_running = false;

class Work {
 public:
  Work(const GuardedUser& user, std::function<void()> function)
      : user_(user), function_(std::move(function)) {}

  const GuardedUser& user() const { return user_; }

  // On the new thread.
  void Run() {
    function_();
    function_ = nullptr;  // what it holds may be waited for
    TracedThread::ReleaseStragglers();
    const std::lock_guard lock(mutex_);
    is_done_ = true;
    done_.notify_all();
  }

  bool is_done() {
    const std::lock_guard lock(mutex_);
    return is_done_;
  }

  bool Await(const std::function<void()>& between, uint64_t patience_ns) {
    const uint64_t deadline = MonotonicNs() + patience_ns;
    std::unique_lock lock(mutex_);
    while (!done_.wait_for(lock, kBetween, [this] { return is_done_; })) {
      if (MonotonicNs() > deadline)
        return false;
      lock.unlock();
      between();
      lock.lock();
    }
    return true;
  }

 private:
  GuardedUser user_;
  std::function<void()> function_;
  std::mutex mutex_;
  std::condition_variable done_;
  bool is_done_ = false;
};

thread_local std::vector<std::shared_ptr<Work>> t_abandoned;

bool MayBegin(const GuardedUser& user) {
  std::erase_if(t_abandoned, [](const auto& work) { return work->is_done(); });
  std::vector<GuardedUser> others;
  others.reserve(t_abandoned.size());
  for (const std::shared_ptr<Work>& work : t_abandoned)
    others.push_back(work->user());
  const size_t limit = user.id == geteuid() ? kMaxAbandoned : kMaxAbandonedOfOther;
  return HasRoomFor(
      user, others,
      {.of_user = limit, .elsewhere = kMaxAbandonedElsewhere, .all = kMaxAbandoned});
}

}  // namespace

bool IsRunningApart() {
  return t_is_running;
}

bool RunApart(const GuardedUser& user,
              std::function<void()> work,
              const std::function<void()>& between,
              uint64_t patience_ns) {
  if (t_is_running || !MayBegin(user))
    return false;
  const auto shared = std::make_shared<Work>(user, std::move(work));
  pthread_t thread{};
  if (!StartQuietThread([shared] { shared->Run(); }, &thread))
    return false;
  t_is_running = true;
  const bool is_done = shared->Await(between, patience_ns);
  t_is_running = false;
  if (is_done) {
    pthread_join(thread, nullptr);
    return true;
  }
  pthread_detach(thread);
  t_abandoned.push_back(shared);
  return false;
}

bool RunApart(pid_t pid,
              std::function<void()> work,
              const std::function<void()>& between,
              uint64_t patience_ns) {
  return RunApart(GuardedUserOf(pid).value_or(GuardedUser{.id = kNobody}),
                  std::move(work), between, patience_ns);
}

}  // namespace heapprofd
