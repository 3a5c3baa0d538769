// The seccomp filters of threads that we trace: our system calls in there would be punished
// by them, so they are suspended meanwhile (PTRACE_O_SUSPEND_SECCOMP).
#pragma once

#include <sys/types.h>

#include <string>

namespace heapprofd {

// The option of ptrace(2), not in <sys/ptrace.h>. Only for a system call of ours that has
// been looked at (thread/guided_thread.h).
inline constexpr long kSuspendFilters = 1L << 21;

// Whether a thread is under a seccomp filter.
bool IsUnderSeccomp(pid_t tid);

// Why this process cannot suspend another's seccomp filter, and what to do; empty: nothing
// is known to be in the way.
std::string ObstacleToSuspendingFilters();

}  // namespace heapprofd
