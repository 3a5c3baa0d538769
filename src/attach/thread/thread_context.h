// What a thread goes on with that we have stopped: its registers, the signals that it has
// blocked, and the system call that the stop has interrupted.
//
// All of it is the kernel's as soon as the thread runs again.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <cstdint>
#include <optional>

#include "attach/remote_process.h"
#include "attach/thread/interrupted_call.h"
#include "rt/resume_registers.h"

namespace heapprofd {

class ThreadContext {
 public:
  explicit ThreadContext(pid_t tid) : tid_(tid) {}

  pid_t tid() const { return tid_; }

  // The exec of a thread that is not the first of its process changes its id.
  void set_tid(pid_t tid) { tid_ = tid; }

  // Right before the thread is asked to stop: a call that it waits in cannot be seen as a
  // whole afterwards.
  void NoteWaitingCall() { waiting_in_ = WaitingCallOf(tid_); }

  // Once it has stopped. A system call that the stop has interrupted begins anew when the
  // thread goes on. False: it is gone.
  bool Fetch();

  // As they were fetched.
  user_regs_struct& registers() { return registers_; }

  const user_regs_struct& registers() const { return registers_; }

  // Registers with which the interrupted code can go on by itself from an arbitrary place,
  // system calls begun anew.
  rt::ResumeRegisters ResumeState() const;

  bool SetRegisters(const user_regs_struct& registers) const;

  // The signals that it has blocked, outside of a system call that waits with others;
  // nullopt: it is gone.
  std::optional<uint64_t> SignalMask() const;
  bool SetSignalMask(uint64_t mask) const;

  // Whether it is in code that the kernel would have restart elsewhere (rseq(2)), and so
  // must not be led away from it.
  bool IsInRestartableSequence(const RemoteProcess& process) const;

 private:
  void RestartInterruptedCall();

  pid_t tid_;
  WaitingCall waiting_in_;  // when it was first asked to stop
  user_regs_struct registers_{};
};

}  // namespace heapprofd
