// Work on other processes, on a thread of its own: it waits for them, and whoever wants
// it done serves others meanwhile.
//
// The thread is the tracer of whatever the work traces, and ends with it. The kernel then
// lets go of all that is left, also of threads that do not stop (they wait for a disk, or
// for the child of their vfork): nobody else can, and until then no signal would end the
// program.
#pragma once

#include <cstdint>
#include <functional>

#include "base/files/guarded_read.h"

namespace heapprofd {

struct ApartPatience {
  uint64_t all_ns = 20'000'000'000;
  // Of which the work waits for the program, in all its parts together (WaitLimit). What
  // comes behind the end of that is to let go of threads, and may take some seconds.
  uint64_t own_ns = 14'000'000'000;
  // Of which the work stands still in the kernel, with another user's process. Its own
  // waits, in which it looks again and again, are none of these. What `between` cannot
  // do meanwhile, as another recording's begin, waits so long; beside N works that have
  // not come to an end only the N+1st part.
  uint64_t stalled_ns = 3'000'000'000;
};

// Runs `work` on a process of `user` to its end and calls `between` every few
// milliseconds until then. False: it has not come to an end in time, or could not begin
// (some of his, or too many in all, have not; no threads are left). It may go on by
// itself then, so all that it uses must be its own.
bool RunApart(const GuardedUser& user,
              std::function<void()> work,
              const std::function<void()>& between,
              const ApartPatience& patience = {});

// For a process; of all that are gone there is one user.
bool RunApart(pid_t pid,
              std::function<void()> work,
              const std::function<void()>& between,
              const ApartPatience& patience = {});

// Whether `between` is being called: nothing can be run apart from in there.
bool IsRunningApart();

}  // namespace heapprofd
