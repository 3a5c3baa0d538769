#include "attach/thread/traced_thread.h"

#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <cerrno>
#include <utility>

#include "attach/registers.h"
#include "attach/thread/exec_rights.h"
#include "attach/thread/seccomp_filters.h"
#include "attach/thread/signal_sets.h"
#include "attach/thread/stragglers.h"
#include "attach/thread/thread_states.h"
#include "base/clock.h"

namespace heapprofd {
namespace {

constexpr uint64_t kReleaseTimeoutNs = 200'000'000;

}  // namespace

// Between becoming the tracer and the request to stop nothing is waited for: what the
// thread begins in that time, an exec perhaps, it does under a tracer.
bool TracedThread::Seize() {
  options_ = PTRACE_O_TRACESYSGOOD;
  if (!MayTraceExecs(tid()) && IsInExec(tid())) {
    errno = EAGAIN;
    return false;
  }
  PrepareToStop();
  is_suspended_ = TakeStraggler(tid());  // it is ours still, and may be in a call of ours
  if (!is_suspended_ && ptrace(PTRACE_SEIZE, tid(), 0, options_) != 0)
    return false;
  if (!is_to_be_asked_)
    Interrupt();
  return true;
}

// One that cannot stop now and has been asked to does not hear signals either until it
// can, also when we are gone (the kernel thinks that it has some to deal with): SIGTERM
// would not end it.
void TracedThread::PrepareToStop() {
  is_to_be_asked_ = IsUninterruptible(tid());
  if (!is_to_be_asked_)
    context_.NoteWaitingCall();
}

void TracedThread::AskToStop() {
  PrepareToStop();
  if (!is_to_be_asked_)
    Interrupt();
}

bool TracedThread::SeizeForExec(pid_t pid) {
  options_ = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC;
  tid_after_exec_ = pid;
  bool is_ours = ptrace(PTRACE_SEIZE, tid(), 0, options_) == 0;
  if (!is_ours && errno == ESRCH && tid() != pid) {  // it has just done so
    context_.set_tid(pid);
    is_ours = ptrace(PTRACE_SEIZE, tid(), 0, options_) == 0;
  }
  if (is_ours)
    Interrupt();
  return is_ours;
}

TracedThread::Wait TracedThread::WaitForEvent(const std::function<bool()>& may_wait,
                                              int* status) {
  constexpr int kQuickLooks = 50;  // a thread that runs stops within microseconds
  for (int looks = 0;; ++looks) {
    const pid_t waited = Look(status);
    if (waited < 0 || (waited > 0 && !WIFSTOPPED(*status)))
      return Wait::kGone;
    if (waited > 0)
      return Wait::kStopped;
    if (is_to_be_asked_)
      AskToStop();
    if (!may_wait())
      return Wait::kTimedOut;
    if (looks < kQuickLooks)
      sched_yield();
    else
      SleepNs(20'000);
  }
}

// The exec of a thread that is not the first of its process changes its id.
pid_t TracedThread::Look(int* status) {
  const pid_t waited = waitpid(tid(), status, __WALL | WNOHANG);
  if (waited >= 0 || tid_after_exec_ == 0 || tid_after_exec_ == tid())
    return waited;
  context_.set_tid(tid_after_exec_);
  return waitpid(tid(), status, __WALL | WNOHANG);
}

void TracedThread::Interrupt() const {
  ptrace(PTRACE_INTERRUPT, tid(), 0, 0);
}

TracedThread::Wait TracedThread::WaitForStop(uint64_t deadline_ns) {
  const auto may_wait = [deadline_ns] { return MonotonicNs() <= deadline_ns; };
  while (true) {
    int status = 0;
    const Wait outcome = WaitForEvent(may_wait, &status);
    if (outcome != Wait::kStopped)
      return outcome;
    if (status >> 16 == PTRACE_EVENT_STOP) {
      NoteStopped();
      if (is_stopped_)
        return Wait::kStopped;
      continue;  // killed: to be waited for
    }
    if (status >> 16 != 0 || IsAtCall(status))
      Interrupt();  // another event ends our request; a signal that came first does not
    PassOn(status);
  }
}

void TracedThread::NoteStopped() {
  is_stopped_ = context_.Fetch();
}

bool TracedThread::IsAtCall(int status) {
  constexpr int kAtCall = SIGTRAP | 0x80;  // PTRACE_O_TRACESYSGOOD
  return WIFSTOPPED(status) && status >> 16 == 0 && WSTOPSIG(status) == kAtCall;
}

bool TracedThread::SuspendFilters() {
  is_suspended_ = ptrace(PTRACE_SETOPTIONS, tid(), 0, options_ | kSuspendFilters) == 0;
  return is_suspended_;
}

bool TracedThread::CanRunOurCalls() const {
  TracedThread thread = *this;
  const bool can = thread.SuspendFilters() || !IsUnderSeccomp(tid());
  ptrace(PTRACE_SETOPTIONS, tid(), 0, options_);
  return can;
}

bool TracedThread::GoThroughCall() {
  if (!SuspendFilters() && IsUnderSeccomp(tid())) {
    errno = EPERM;
    return false;
  }
  is_stopped_ = false;
  return ptrace(PTRACE_SYSCALL, tid(), 0, 0) == 0;
}

// A filter is asked about a call that is no call, too, and may punish it.
bool TracedThread::SkipCall() {
  is_stopped_ = false;
  SuspendFilters();
  return SetCallNumber(tid(), -1) && ptrace(PTRACE_SYSCALL, tid(), 0, 0) == 0;
}

void TracedThread::PassOn(int status) {
  if (IsAtCall(status)) {
    Continue();
    return;
  }
  const int signal = status >> 16 != 0 ? 0 : WSTOPSIG(status);
  if (signal == 0 || !IsCaught(tid(), signal))
    NoteStopped();
  Continue(signal);
}

bool TracedThread::Serve() {
  int status = 0;
  const pid_t waited = Look(&status);
  if (waited == 0)
    return true;
  if (waited < 0 || !WIFSTOPPED(status))
    return false;
  PassOn(status);
  return true;
}

bool TracedThread::Continue(int signal) {
  is_stopped_ = false;
  if (std::exchange(is_suspended_, false) &&
      ptrace(PTRACE_SETOPTIONS, tid(), 0, options_) != 0)
    return false;
  return ptrace(stops_at_calls_ ? PTRACE_SYSCALL : PTRACE_CONT, tid(), 0,
                static_cast<long>(signal)) == 0;
}

void TracedThread::Release() {
  if (std::exchange(was_released_, true))
    return;
  if (is_stopped_ && ptrace(PTRACE_DETACH, tid(), 0, 0) == 0)
    return;
  // One that was killed while it was stopped waits for us to see that it has ended.
  // It runs, or it has stopped or ended and we have not looked yet: a signal must not be
  // lost, nor a system call that the stop has interrupted.
  AskToStop();
  switch (WaitForStop(MonotonicNs() + kReleaseTimeoutNs)) {
    case Wait::kStopped:
      ptrace(PTRACE_DETACH, tid(), 0, 0);
      break;
    case Wait::kTimedOut:
      AddStraggler(*this);
      break;
    case Wait::kGone:
      break;
  }
}

void TracedThread::Abandon() {
  if (!std::exchange(was_released_, true))
    AddStraggler(*this);
}

}  // namespace heapprofd
