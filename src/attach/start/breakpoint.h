// A breakpoint of the processor at an instruction, as a perf event.
#pragma once

#include <cstdint>

#include "attach/thread/traced_thread.h"
#include "base/scoped_fd.h"

namespace heapprofd {

// Of a thread of another process, in which we are told of it by a signal. It ends with us,
// at the latest, and the signal does nothing when nobody traces the thread any more: a
// debug register set by ptrace would live on, and kill the program.
class Breakpoint {
 public:
  Breakpoint(const TracedThread& thread, uint64_t address);

  bool is_set() const { return event_.valid(); }

  // Whether it is what a stopped thread has stopped for.
  bool IsHit(int signal) const;

 private:
  pid_t tid_;
  int signal_ = 0;
  ScopedFd event_;
};

// Whether this processor stops at breakpoints: there are virtual machines that take them
// and never do.
bool HaveBreakpoints();

}  // namespace heapprofd
