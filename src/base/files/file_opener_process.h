// For tests: the process that opens files for root's processes
// (base/files/foreign_file.h), which can be made as slow as one that waits for a file
// system.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "base/clock.h"
#include "base/files/foreign_file.h"

namespace heapprofd {

// Before the first test that has one started, so that it becomes our child.
inline const bool kIsReaper = prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;

class FileOpenerProcess {
 public:
  FileOpenerProcess() {
    EXPECT_TRUE(kIsReaper);
    PrepareForeignFiles();
    const uint64_t deadline_ns = MonotonicNs() + 60'000'000'000;
    while (pid_ == 0 && MonotonicNs() < deadline_ns)  // it has not always begun yet
      pid_ = Find();
  }

  ~FileOpenerProcess() { Continue(); }

  bool Stop() const {
    siginfo_t state{};
    return pid_ != 0 && kill(pid_, SIGSTOP) == 0 &&
           waitid(P_PID, static_cast<id_t>(pid_), &state, WSTOPPED | WNOWAIT) == 0;
  }

  void Continue() const {
    if (pid_ != 0)
      kill(pid_, SIGCONT);
  }

 private:
  static pid_t Find() {
    const std::string self = std::to_string(getpid());
    std::ifstream children("/proc/" + self + "/task/" + self + "/children");
    for (pid_t pid = 0; children >> pid;) {
      std::string name;
      std::ifstream("/proc/" + std::to_string(pid) + "/comm") >> name;
      if (name == "heapprofd-open")
        return pid;
    }
    return 0;
  }

  pid_t pid_ = 0;
};

}  // namespace heapprofd
