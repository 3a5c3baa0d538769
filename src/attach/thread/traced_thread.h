// Stopping threads of a process by ptrace and letting them go, in a way that they do not
// notice: no signal is sent (PTRACE_SEIZE, PTRACE_INTERRUPT), and system calls that a
// stop would end with EINTR are restarted.
//
// ptrace knows one tracer thread: everything here must happen on one thread of ours.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <cstdint>
#include <functional>

#include "attach/thread/thread_context.h"

namespace heapprofd {

class TracedThread {
 public:
  explicit TracedThread(pid_t tid) : context_(tid) {}

  pid_t tid() const { return context_.tid(); }

  // What it goes on with, as of its last stop.
  const ThreadContext& context() const { return context_; }

  // The same, for whoever changes them there (ThreadContext::SetRegisters), too.
  user_regs_struct& registers() { return context_.registers(); }

  // Becomes its tracer and asks it to stop. errno is set when false; EAGAIN: it is inside
  // an exec that would lose rights under this tracer (exec_rights.h).
  bool Seize();

  // As Seize, for a thread of process `pid` that is about to become another program: it
  // runs on, and stops when it has; its id is `pid` then.
  bool SeizeForExec(pid_t pid);

  enum class Wait : uint8_t { kStopped, kTimedOut, kGone };

  // Until the thread stops, for whatever reason: `status` of waitpid(2) says for which,
  // and PassOn ends it. `may_wait`: asked again and again.
  Wait WaitForEvent(const std::function<bool()>& may_wait, int* status);

  // Until the thread has stopped for our request; signals that arrive before are handed
  // on. Fetches context(): a system call that the stop has interrupted begins anew when
  // the thread goes on.
  Wait WaitForStop(uint64_t deadline_ns);

  // Asks a running thread to stop.
  void Interrupt() const;

  // Lets a stopped thread run, still traced.
  bool Continue(int signal = 0);

  // Whether it stops at the begin and at the end of each system call from then on.
  void StopAtCalls(bool stops) { stops_at_calls_ = stops; }

  // True if that is what it has stopped for; `status` is of waitpid(2).
  static bool IsAtCall(int status);

  // True if the stopped thread is under no seccomp filter, or we may suspend it.
  bool CanRunOurCalls() const;

  // Lets a thread that has stopped at the begin of a system call go on to its end, where
  // it stops, with its seccomp filters suspended. They are in force again before it goes
  // on from there. False, with errno set: they cannot be suspended, or it is gone.
  bool GoThroughCall();

  // The same without the call.
  bool SkipCall();

  // The same after a stop, of which waitpid(2) gave `status`, that we have not asked for.
  void PassOn(int status);

  // Hands on signals to a running thread that we trace; false: it has ended.
  bool Serve();

  bool is_stopped() const { return is_stopped_; }

  // The caller has waited for the thread, and it has stopped.
  void NoteStopped();

  // Ends tracing, from any state, if that has not been done. A thread that is in an
  // uninterruptible sleep is left for ReleaseStragglers.
  void Release();

  // The same without waiting, for one that was asked to stop and has not yet.
  void Abandon();

 private:
  // Right before AskToStop, or before it is traced.
  void PrepareToStop();

  // As soon as it can stop.
  void AskToStop();

  // True if the filters are suspended; the thread is stopped.
  bool SuspendFilters();

  // What waitpid(2) says, which does not wait: 0: nothing has happened.
  pid_t Look(int* status);

  ThreadContext context_;
  pid_t tid_after_exec_ = 0;     // 0: the same
  bool is_to_be_asked_ = false;  // to stop, when it can
  bool stops_at_calls_ = false;
  bool is_suspended_ = false;  // are its seccomp filters
  long options_ = 0;           // of ptrace(2), but for that
  bool was_released_ = false;
  bool is_stopped_ = false;  // and its stop has been waited for
};

}  // namespace heapprofd
