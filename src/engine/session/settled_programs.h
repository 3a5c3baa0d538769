// Processes whose program has been the same for a while. One that has just been forked or
// executed may be about to execute another program, which would lose rights under an
// ordinary user's tracer (attach/thread/exec_rights.h).
//
// One thread: the session's.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>

namespace heapprofd {

class SettledPrograms {
 public:
  static constexpr uint64_t kSettleNs = 100'000'000;

  // True if the process has been the same program for kSettleNs since it was first asked
  // about. `now_ns`: MonotonicNs.
  bool Contains(pid_t pid, uint64_t now_ns);

 private:
  static constexpr size_t kMaxProcesses = 20'000;

  struct Seen {
    std::string image;
    uint64_t since_ns;
  };

  std::map<pid_t, Seen> seen_;
};

}  // namespace heapprofd
