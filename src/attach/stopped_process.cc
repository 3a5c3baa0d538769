#include "attach/stopped_process.h"

#include <algorithm>
#include <cerrno>

#include "attach/refusals.h"
#include "attach/thread/exec_rights.h"
#include "attach/thread/thread_states.h"
#include "attach/wait_limit.h"

namespace heapprofd {
void PauseBeforeRetry() {
  SleepNs(500'000);
}

Urgency::Urgency() : policy_(sched_getscheduler(0)) {
  sched_getparam(0, &priority_);
  const sched_param first{.sched_priority = 1};
  is_raised_ = policy_ == SCHED_OTHER && sched_setscheduler(0, SCHED_RR, &first) == 0;
}

Urgency::~Urgency() {
  if (is_raised_)
    sched_setscheduler(0, policy_, &priority_);
}

StoppedProcess::StoppedProcess(pid_t pid)
    : urgency_(std::make_unique<Urgency>()), pid_(pid), stopped_at_ns_(MonotonicNs()) {}

StoppedProcess::~StoppedProcess() {
  for (TracedThread& thread : threads_) {
    if (thread.is_stopped())
      thread.Release();
  }
  for (TracedThread& thread : threads_)
    thread.Abandon();  // the others
}

Status StoppedProcess::StopNewThreads(const RemoteProcess& process,
                                      Attempt* attempt,
                                      bool* found_new) {
  const size_t first = threads_.size();
  for (const pid_t tid : process.Threads()) {
    if (seen_.contains(tid))
      continue;
    TracedThread thread(tid);
    if (thread.Seize())
      threads_.push_back(thread);
    else if (errno != ESRCH && !IsDead(pid_, tid))
      return SeizeError(pid_, errno);
    seen_.insert(tid);
    *found_new = true;
  }
  for (size_t i = first; i < threads_.size();) {
    TracedThread::Wait outcome =
        threads_[i].WaitForStop(MonotonicNs() + attempt->patience_ns);
    if (outcome == TracedThread::Wait::kTimedOut && IsDead(pid_, threads_[i].tid())) {
      threads_[i].Abandon();  // a first thread, which is there until all have ended
      outcome = TracedThread::Wait::kGone;
    }
    if (outcome == TracedThread::Wait::kTimedOut) {
      attempt->straggler = threads_[i].tid();
      return Status(StatusCode::kTryAgain, "cannot stop process " + std::to_string(pid_) +
                                               ": its thread " +
                                               std::to_string(threads_[i].tid()) +
                                               kDidNotStop + "; try again later");
    }
    if (outcome == TracedThread::Wait::kGone)
      threads_.erase(threads_.begin() + static_cast<ptrdiff_t>(i));
    else
      ++i;
  }
  return {};
}

namespace {

// Until a thread that was asked to stop has got a processor, and with it has stopped.
void AwaitProcessor(pid_t tid, uint64_t patience_ns) {
  const uint64_t end = MonotonicNs() + patience_ns;
  while (IsRunnable(tid) && MonotonicNs() < end)
    SleepNs(1'000'000);
}

}  // namespace

// A thread that does not stop is in an uninterruptible sleep (it waits for a disk, or for
// its vfork child to execute a program), or gets no processor: the others must not wait
// for it. They are let go, and it is tried again; in the second case as soon as it has
// stopped, and for longer.
Result<StoppedProcess> StoppedProcess::Stop(const RemoteProcess& process) {
  constexpr uint64_t kFirstPatienceNs = 10'000'000;
  constexpr uint64_t kLastPatienceNs = 320'000'000;
  constexpr uint64_t kStarvedNs = 4'000'000'000;
  const uint64_t last = WaitUntil(kStarvedNs);
  Attempt attempt{.patience_ns = kFirstPatienceNs};
  while (true) {
    if (!AwaitNoExec(process))
      return IsInExecNow(process.pid());
    Result<StoppedProcess> stopped = TryToStop(process, &attempt);
    if (stopped.ok() || stopped.status().code() != StatusCode::kTryAgain)
      return stopped;
    if (IsReady(attempt.straggler) && MonotonicNs() < last)
      AwaitProcessor(attempt.straggler, kLastPatienceNs);
    else if (attempt.patience_ns < kLastPatienceNs)
      SleepNs(attempt.patience_ns);
    else
      return Status(StatusCode::kUnavailable, stopped.status().message());
    attempt.patience_ns = std::min(attempt.patience_ns * 2, kLastPatienceNs);
  }
}

Result<StoppedProcess> StoppedProcess::TryToStop(const RemoteProcess& process,
                                                 Attempt* attempt) {
  StoppedProcess stopped(process.pid());
  for (bool found_new = true; found_new;) {
    found_new = false;
    HPD_TRY(stopped.StopNewThreads(process, attempt, &found_new));
  }
  if (stopped.threads_.empty())
    return SeizeError(process.pid(), ESRCH);
  return stopped;
}

}  // namespace heapprofd
