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
#include <optional>
#include <string>
#include <vector>

#include "attach/interrupted_call.h"
#include "attach/remote_process.h"
#include "base/status.h"

namespace heapprofd {

class TracedThread {
 public:
  explicit TracedThread(pid_t tid) : tid_(tid) {}

  pid_t tid() const { return tid_; }

  user_regs_struct& registers() { return registers_; }

  const user_regs_struct& registers() const { return registers_; }

  // Becomes its tracer and asks it to stop. `is_filtered`: seccomp filters are suspended
  // while we trace. errno is set when false.
  bool Seize(bool is_filtered);

  // The same once it is stopped, for one that may have put itself under a filter since, or
  // may be put there by another thread. False: filters are in force, if there are any.
  bool SuspendFilters() const;

  // As Seize, for a thread of process `pid` that is about to become another program: it
  // runs on, and stops when it has; its id is `pid` then.
  bool SeizeForExec(bool is_filtered, pid_t pid);

  enum class Wait : uint8_t { kStopped, kTimedOut, kGone };

  // Until the thread stops, for whatever reason: `status` of waitpid(2) says for which,
  // and PassOn ends it. `may_wait`: asked again and again.
  Wait WaitForEvent(const std::function<bool()>& may_wait, int* status);

  enum class Exec : uint8_t { kDone, kFailed, kTimedOut, kGone };

  // After that: until it has. It is stopped then, also when the call has failed.
  // `is_same_image`: whether the process is still what it was before.
  Exec WaitForExec(const std::function<bool()>& may_wait,
                   const std::function<bool()>& is_same_image);

  // Until the thread has stopped for our request; signals that arrive before are handed
  // on. Fills registers(): a system call that the stop has interrupted begins anew when
  // the thread goes on.
  Wait WaitForStop(uint64_t deadline_ns);

  // Asks a running thread to stop.
  void Interrupt() const;

  // Registers with which the interrupted code can go on by itself from an arbitrary place,
  // system calls begun anew.
  rt::ResumeRegisters ResumeState() const;

  bool SetRegisters(const user_regs_struct& registers) const;

  // The signals that a stopped thread has blocked, outside of a system call that waits
  // with others; nullopt: it is gone.
  std::optional<uint64_t> SignalMask() const;
  bool SetSignalMask(uint64_t mask) const;

  // Whether a stopped thread is in code that the kernel would have restart elsewhere
  // (rseq(2)), and so must not be led away from it.
  bool IsInRestartableSequence(const RemoteProcess& process) const;

  // Lets a stopped thread run, still traced.
  bool Continue(int signal = 0);

  // Whether it stops at the begin and at the end of each system call from then on.
  void StopAtCalls(bool stops) {
    stops_at_calls_ = stops;
    knows_calls_ |= stops;
  }

  // Whether that is what it has stopped for; `status` is of waitpid(2). Such a stop looks
  // like a SIGTRAP, which would kill it if it were passed on.
  bool IsAtCall(int status) const;

  // The same after a stop, of which waitpid(2) gave `status`, that we have not asked for.
  void PassOn(int status);

  // Hands on signals to a running thread that we trace; false: it has ended.
  bool Serve();

  bool is_stopped() const { return is_stopped_; }

  bool was_released() const { return was_released_; }

  // The caller has waited for the thread, and it has stopped.
  void NoteStopped();

  // Ends tracing, from any state. A thread that is in an uninterruptible sleep is left
  // for ReleaseStragglers, which the same thread of ours must call until there are none,
  // or end: then the kernel lets it go.
  void Release();

  // The same without waiting, for one that was asked to stop and has not yet.
  void Abandon();
  static void ReleaseStragglers();
  static size_t Stragglers();

 private:
  void RestartInterruptedCall();

  // As soon as it can stop.
  void AskToStop();

  // What waitpid(2) says, which does not wait: 0: nothing has happened.
  pid_t Look(int* status);

  pid_t tid_;
  pid_t tid_after_exec_ = 0;  // 0: the same
  WaitingCall waiting_in_;    // when it was first asked to stop
  user_regs_struct registers_{};
  bool is_to_be_asked_ = false;  // to stop, when it can
  bool stops_at_calls_ = false;
  bool knows_calls_ = false;  // one such stop may be left
  bool was_released_ = false;
  bool is_stopped_ = false;  // and its stop has been waited for
};

// Whether a thread is under a seccomp filter.
bool IsUnderSeccomp(pid_t tid);

// Why this process cannot suspend another's seccomp filter, and what to do; empty: nothing
// is known to be in the way.
std::string ObstacleToSuspendingFilters();

// What is said of a thread of which nothing else is known.
inline constexpr char kDidNotStop[] =
    " did not stop in time (an uninterruptible sleep, or too much runs on this machine)";

// Why a thread could not be seized, and what to do.
Status SeizeError(pid_t pid, int error);

// Whether a thread waits in the kernel where nothing can stop it: for a disk, for the
// child of its vfork.
bool IsUninterruptible(pid_t tid);

// Whether a thread runs, or waits for a processor.
bool IsRunnable(pid_t tid);

// Whether a thread that has been asked to stop has, or will as soon as it gets a processor:
// waiting for it keeps it from nothing.
bool IsReady(pid_t tid);

// Whether a thread has ended, its tracer's last wait for it perhaps left.
bool IsDead(pid_t pid, pid_t tid);

}  // namespace heapprofd
