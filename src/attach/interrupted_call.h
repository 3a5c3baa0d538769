// System calls that end with EINTR because a thread was made to stop: which ones, and
// when the program must not see it.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <optional>

namespace heapprofd {

// Registers with which a stopped thread makes its interrupted call anew; nullopt when it
// was not interrupted, when the kernel restarts the call by itself, or when a signal
// handler is about to run, after which EINTR is what the program expects.
std::optional<user_regs_struct> RestartedCall(pid_t tid,
                                              const user_regs_struct& registers);

// Whether the process has a handler for `signal`. One without is not noticed by a call
// that it arrives in, but by the kernel when the thread is traced.
bool IsCaught(pid_t tid, int signal);

// Whether a thread that has come out of execve(2) makes that call anew.
bool IsExecBegunAnew(const user_regs_struct& registers);

// Registers with which an interrupted thread can be sent on from an arbitrary place:
// calls that the kernel would restart, which it does not do from there, begin anew.
user_regs_struct ResumedElsewhere(const user_regs_struct& registers);

}  // namespace heapprofd
