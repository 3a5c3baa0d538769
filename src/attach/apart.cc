#include "attach/apart.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "attach/thread/stragglers.h"
#include "attach/wait_limit.h"
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

// Whether a thread of ours stands still: between two looks it has only waited, for the
// same thing. One that waits by looking again and again, or for a processor, does not.
class Stalls {
 public:
  // For how long it has, in all looks so far.
  uint64_t Look(pid_t tid) {
    const std::string status =
        ReadProcFile("/proc/self/task/" + std::to_string(tid) + "/status", kStatusSize);
    std::string waits = StatusField(status, "voluntary_ctxt_switches");
    const bool is_waiting = !StatusField(status, "State").starts_with('R');
    const uint64_t now = MonotonicNs();
    if (is_waiting && !waits.empty() && waits == waits_)
      stalled_ns_ += std::min(now - looked_ns_, kMaxOfLookNs);
    waits_ = std::move(waits);
    looked_ns_ = now;
    return stalled_ns_;
  }

 private:
  static constexpr size_t kStatusSize = 16384;
  // Should all of this process stand still.
  static constexpr uint64_t kMaxOfLookNs = 100'000'000;

  std::string waits_;  // how many so far
  uint64_t looked_ns_ = 0;
  uint64_t stalled_ns_ = 0;
};

class Work {
 public:
  // `end_ns`: of its own waits.
  Work(const GuardedUser& user, std::function<void()> function, uint64_t end_ns)
      : user_(user), function_(std::move(function)), end_ns_(end_ns) {}

  const GuardedUser& user() const { return user_; }

  // On the new thread.
  void Run() {
    const WaitLimit limit(end_ns_);
    tid_ = gettid();
    function_();
    function_ = nullptr;  // what it holds may be waited for
    ReleaseStragglers();
    const std::lock_guard lock(mutex_);
    is_done_ = true;
    done_.notify_all();
  }

  bool is_done() {
    const std::lock_guard lock(mutex_);
    return is_done_;
  }

  bool Await(const std::function<void()>& between, const ApartPatience& patience) {
    const uint64_t deadline = MonotonicNs() + patience.all_ns;
    Stalls stalls;
    std::unique_lock lock(mutex_);
    while (!done_.wait_for(lock, kBetween, [this] { return is_done_; })) {
      lock.unlock();
      if (MonotonicNs() > deadline ||
          (IsOfOther() && tid_ != 0 && stalls.Look(tid_) > patience.stalled_ns))
        return false;
      between();
      lock.lock();
    }
    return true;
  }

 private:
  bool IsOfOther() const { return user_.id != geteuid(); }

  GuardedUser user_;
  std::function<void()> function_;
  uint64_t end_ns_;
  std::atomic<pid_t> tid_ = 0;
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
              const ApartPatience& patience) {
  if (t_is_running || !MayBegin(user))
    return false;
  ApartPatience left = patience;
  left.stalled_ns /= 1 + t_abandoned.size();
  const auto shared =
      std::make_shared<Work>(user, std::move(work), MonotonicNs() + patience.own_ns);
  pthread_t thread{};
  if (!StartQuietThread([shared] { shared->Run(); }, &thread))
    return false;
  t_is_running = true;
  const bool is_done = shared->Await(between, left);
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
              const ApartPatience& patience) {
  return RunApart(GuardedUserOf(pid).value_or(GuardedUser{.id = kNobody}),
                  std::move(work), between, patience);
}

}  // namespace heapprofd
