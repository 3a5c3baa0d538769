// For tests: a program that the kernel does not let stop.
#pragma once

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "attach/thread/test_process.h"
#include "attach/thread/thread_states.h"

namespace heapprofd {

// A process whose thread waits for the child of its vfork, and cannot be stopped.
class VforkWaiter {
 public:
  VforkWaiter() : process_(Wait) {
    while (!IsUninterruptible(pid()))
      usleep(100);
  }

  pid_t pid() const { return process_.pid(); }

 private:
  static void Wait() {
    const pid_t waiter = getpid();
    if (syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0) != 0)
      return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (getppid() == waiter)  // it may have died before that
      pause();
    _exit(0);
  }

  TestProcess process_;
};

}  // namespace heapprofd
