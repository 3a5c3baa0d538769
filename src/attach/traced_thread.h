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
#include <utility>
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
  // on. Fills registers().
  Wait WaitForStop(uint64_t deadline_ns);

  // Asks a running thread to stop.
  void Interrupt() const;

  // A system call that our stop has interrupted, and that the kernel does not restart by
  // itself, begins anew when the thread goes on.
  void RestartInterruptedCall(pid_t pid);

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
  void Release(pid_t pid);
  static void ReleaseStragglers();
  static size_t Stragglers();

 private:
  pid_t tid_;
  user_regs_struct registers_{};
  bool was_released_ = false;
  bool is_stopped_ = false;  // and its stop has been waited for
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

  static Result<StoppedProcess> TryToStop(const RemoteProcess& process,
                                          uint64_t patience_ns);
  Status StopNewThreads(const RemoteProcess& process,
                        uint64_t patience_ns,
                        bool* found_new);

  pid_t pid_;
  uint64_t stopped_at_ns_;
  std::vector<TracedThread> threads_;
  std::vector<pid_t> gone_;
};

// True when one of the stopped `threads` is inside one of `ranges` (begin, end), or may
// come back there: an interrupted signal frame on its stack says so.
bool IsAnyInside(pid_t pid,
                 const std::vector<TracedThread>& threads,
                 const std::vector<std::pair<uint64_t, uint64_t>>& ranges);

// Whether a thread is under a seccomp filter.
bool IsUnderSeccomp(pid_t tid);

// Of any thread of a process.
bool IsAnyUnderSeccomp(pid_t pid);

// Why a thread could not be seized, and what to do.
Status SeizeError(pid_t pid, int error);

}  // namespace heapprofd
