// For tests: a program that the kernel does not let stop.
#pragma once

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/thread/thread_states.h"
#include "base/child_process.h"

namespace heapprofd {

// A process whose thread waits for the child of its vfork, and cannot be stopped.
class VforkWaiter {
 public:
  VforkWaiter() {
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ == 0) {
      EndWithParent(parent, SIGKILL);
      const pid_t waiter = getpid();
      if (syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0) == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (getppid() == waiter)  // it may have died before that
          pause();
        _exit(0);
      }
      _exit(0);
    }
    while (!IsUninterruptible(pid_))
      usleep(100);
  }

  ~VforkWaiter() {
    if (pid_ <= 0)  // -1 would be all processes
      return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, __WALL);
  }

  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

}  // namespace heapprofd
