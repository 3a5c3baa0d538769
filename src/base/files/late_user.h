// For tests: a user whose processes make whoever reads their memory wait, and a process
// of his.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/child_process.h"
#include "base/clock.h"
#include "base/files/guarded_read.h"
#include "base/scoped_fd.h"

namespace heapprofd {

inline constexpr uint64_t kLongReadNs = 60'000'000'000;

// From here on reading for him hangs; it is late.
class LateUser {
 public:
  explicit LateUser(const GuardedUser& user) : user_(user) {
    std::string folder = std::filesystem::temp_directory_path() / "late-XXXXXX";
    if (mkdtemp(folder.data()) == nullptr)
      return;
    folder_ = folder;
    std::ofstream(folder_ + "/file") << "some text";
    // Opening it waits until somebody writes.
    if (mkfifo((folder_ + "/hangs").c_str(), 0600) == 0)
      is_late_ = ReadGuarded(folder_ + "/hangs", user, 100, kPatienceNs).is_late;
  }

  ~LateUser() {
    Release();
    std::filesystem::remove_all(folder_);
  }

  LateUser(const LateUser&) = delete;
  LateUser& operator=(const LateUser&) = delete;

  bool is_late() const { return is_late_; }

  // What was left behind comes to its end, and he is read again. False: he is not.
  bool Release() const {
    for (const uint64_t end = MonotonicNs() + kLongReadNs; MonotonicNs() < end;) {
      const ScopedFd writer(open((folder_ + "/hangs").c_str(), O_RDWR | O_CLOEXEC));
      if (ReadGuarded(folder_ + "/file", user_, 100, kLongReadNs).text == "some text")
        return true;
      usleep(1000);
    }
    return false;
  }

 private:
  static constexpr uint64_t kPatienceNs = 1'000'000;

  GuardedUser user_;
  std::string folder_;
  bool is_late_ = false;
};

// It waits. Only root can make one.
class ProcessOfUser {
 public:
  explicit ProcessOfUser(uid_t user, bool has_own_mounts = false) {
    int ready[2];
    if (pipe(ready) != 0)
      return;
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ == 0) {
      const bool is_his = (!has_own_mounts || unshare(CLONE_NEWNS) == 0) &&
                          setresuid(user, user, user) == 0;
      EndWithParent(parent, SIGKILL);
      if (!is_his || write(ready[1], "", 1) != 1)
        _exit(1);
      while (true)
        pause();
    }
    close(ready[1]);
    char byte = 0;
    is_ready_ = read(ready[0], &byte, 1) == 1;
    close(ready[0]);
  }

  ~ProcessOfUser() {
    if (pid_ <= 0)  // -1 would be all processes
      return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  ProcessOfUser(const ProcessOfUser&) = delete;
  ProcessOfUser& operator=(const ProcessOfUser&) = delete;

  pid_t pid() const { return pid_; }

  bool is_ready() const { return is_ready_; }

 private:
  pid_t pid_ = -1;
  bool is_ready_ = false;
};

}  // namespace heapprofd
