// For tests: a process of ours that somebody attaches to.
#pragma once

#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "base/child_process.h"

namespace heapprofd {

[[noreturn]] inline void PauseForEver() {
  while (true)
    pause();
}

// A child that does `run`, until this object ends.
class TestProcess {
 public:
  explicit TestProcess(const std::function<void()>& run = PauseForEver) {
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ != 0)
      return;
    EndWithParent(parent, SIGKILL);
    run();
    _exit(0);
  }

  ~TestProcess() {
    if (pid_ <= 0)  // -1 would be all processes
      return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, __WALL);
  }

  TestProcess(const TestProcess&) = delete;
  TestProcess& operator=(const TestProcess&) = delete;

  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

}  // namespace heapprofd
