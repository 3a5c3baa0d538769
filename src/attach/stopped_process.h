// All threads of a process, stopped at once: the only state in which its code may change.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <unordered_set>
#include <utility>
#include <vector>

#include "attach/remote_process.h"
#include "attach/thread/traced_thread.h"
#include "base/status.h"

namespace heapprofd {

// Threads that are where code is to change go on for a moment, and are stopped again.
inline constexpr int kPatchTries = 200;
void PauseBeforeRetry();

// While it exists, the calling thread goes before the programs on a busy machine, where
// it may: a process waits for us.
class Urgency {
 public:
  Urgency();
  ~Urgency();
  Urgency(const Urgency&) = delete;
  Urgency& operator=(const Urgency&) = delete;

 private:
  int policy_;
  sched_param priority_{};
  bool is_raised_ = false;
};

// All threads of a process, stopped. They go on when this object ends.
class StoppedProcess {
 public:
  // kUnavailable: a thread did not stop in time, and all go on.
  static Result<StoppedProcess> Stop(const RemoteProcess& process);

  StoppedProcess(StoppedProcess&&) = default;
  StoppedProcess& operator=(StoppedProcess&&) = delete;
  StoppedProcess(const StoppedProcess&) = delete;
  StoppedProcess& operator=(const StoppedProcess&) = delete;
  ~StoppedProcess();

  const std::vector<TracedThread>& threads() const { return threads_; }

  uint64_t stopped_at_ns() const { return stopped_at_ns_; }

 private:
  explicit StoppedProcess(pid_t pid);

  struct Attempt {
    uint64_t patience_ns;  // with each thread, while the others are stopped
    pid_t straggler = 0;   // the thread that did not stop
  };

  // kTryAgain: a thread did not stop in time.
  static Result<StoppedProcess> TryToStop(const RemoteProcess& process, Attempt* attempt);
  Status StopNewThreads(const RemoteProcess& process, Attempt* attempt, bool* found_new);

  std::unique_ptr<Urgency> urgency_;
  pid_t pid_;
  uint64_t stopped_at_ns_;
  std::vector<TracedThread> threads_;
  std::unordered_set<pid_t> seen_;  // also those that have ended
};

}  // namespace heapprofd
