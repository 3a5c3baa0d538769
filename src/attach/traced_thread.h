// Stopping threads of a process by ptrace and letting them go, in a way that they do not
// notice: no signal is sent (PTRACE_SEIZE, PTRACE_INTERRUPT), and system calls that a
// stop would end with EINTR are restarted.
//
// ptrace knows one tracer thread: everything here must happen on one thread of ours.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "attach/remote_process.h"
#include "base/status.h"

namespace heapprofd {

// How long threads may take to stop before an attempt is given up: those in an
// uninterruptible sleep never do.
inline constexpr uint64_t kStopTimeoutNs = 500'000'000;

class TracedThread {
 public:
  explicit TracedThread(pid_t tid) : tid_(tid) {}

  pid_t tid() const { return tid_; }

  user_regs_struct& registers() { return registers_; }

  const user_regs_struct& registers() const { return registers_; }

  // Becomes its tracer and asks it to stop. `is_filtered`: seccomp filters are suspended
  // while we trace. errno is set when false.
  bool Seize(bool is_filtered);

  // The same for a thread that is about to become another program: it runs on, and stops
  // when it has.
  bool SeizeForExec(bool is_filtered) const;

  enum class Wait : uint8_t { kStopped, kTimedOut, kGone };

  // Until the thread has stopped for our request; signals that arrive before are handed
  // on. Fills registers(): a system call that the stop has interrupted begins anew when
  // the thread goes on.
  Wait WaitForStop(uint64_t deadline_ns);

  // Asks a running thread to stop.
  void Interrupt() const;

  // Registers with which the interrupted code can go on from an arbitrary place, system
  // calls begun anew.
  user_regs_struct ResumeState() const;

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

  // Hands on signals to a running thread that we trace; false: it has ended.
  bool Serve();

  bool is_stopped() const { return is_stopped_; }

  bool was_released() const { return was_released_; }

  // The caller has waited for the thread, and it has stopped.
  void NoteStopped();

  // Ends tracing, from any state. A thread that is in an uninterruptible sleep is left
  // for ReleaseStragglers, which the same thread of ours must call until there are none.
  void Release();
  static void ReleaseStragglers();
  static size_t Stragglers();

 private:
  void RestartInterruptedCall();

  // Ends a stop that is not the one we have asked for.
  void PassOn(int status);

  pid_t tid_;
  user_regs_struct registers_{};
  bool was_released_ = false;
  bool is_stopped_ = false;  // and its stop has been waited for
};

// Whether a thread is under a seccomp filter.
bool IsUnderSeccomp(pid_t tid);

// Of any thread of a process.
bool IsAnyUnderSeccomp(pid_t pid);

// Why a thread could not be seized, and what to do.
Status SeizeError(pid_t pid, int error);

// Whether a thread has ended, its tracer's last wait for it perhaps left.
bool IsDead(pid_t pid, pid_t tid);

}  // namespace heapprofd
