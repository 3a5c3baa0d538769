// System calls that a stop interrupts: which end with EINTR, when the program must not see
// it, and how they begin anew.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <array>
#include <cstdint>
#include <optional>

#include "rt/resume_registers.h"

namespace heapprofd {

// A call that a thread waits in, as long as it is not stopped; of all but number and
// arguments its registers tell afterwards, too.
struct WaitingCall {
  int64_t number = -1;  // it waits in none, or it does not matter
  std::array<uint64_t, 6> arguments{};
  uint64_t stack = 0;  // stack pointer
  uint64_t code = 0;   // where the thread goes on when it ends
};

// To be asked right before the thread is.
WaitingCall WaitingCallOf(pid_t tid);

// Registers with which a stopped thread makes its interrupted call anew; nullopt when it
// was not interrupted, when the kernel restarts the call by itself, or when a signal
// handler is about to run, after which EINTR is what the program expects.
std::optional<user_regs_struct> RestartedCall(pid_t tid,
                                              const WaitingCall& call,
                                              const user_regs_struct& registers);

// Whether a thread that has come out of execve(2) makes that call anew.
bool IsExecBegunAnew(const user_regs_struct& registers);

// Registers with which an interrupted thread can go on by itself from an arbitrary place:
// calls that the kernel would restart, which it does not do from there, begin anew. `call`:
// that it waited in, if known. `is_filtered`: a seccomp filter may punish it for calls that
// it does not make itself.
rt::ResumeRegisters ResumedElsewhere(const WaitingCall& call,
                                     const user_regs_struct& registers,
                                     bool is_filtered);

// Calls that end with EINTR after any stop, even if no signal is delivered: signal(7),
// and transfers on sockets with a time limit.
bool EndsWithEintr(int64_t number);

// Calls that wait for a signal, which must not be kept from the thread.
bool WaitsForSignal(int64_t number);

}  // namespace heapprofd
