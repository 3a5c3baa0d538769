// The time between start and end: serves the session until the program and its followed
// children are gone or the user has had enough.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <vector>

#include "base/scoped_fd.h"
#include "engine/session.h"

namespace heapprofd {

struct History {
  std::vector<double> live_bytes;  // evenly spaced, at most kMaxHistory
  uint64_t resident_kib = 0;       // last seen
};

class Recording {
 public:
  // Blocks SIGCHLD, SIGINT, SIGTERM and SIGHUP in this thread: they arrive by descriptor
  // from now on. Must run before the program is started.
  Recording(Session* session, bool show_status);

  // Returns when the recording is over. `program` is a child of ours; its exit code is
  // the result: 128 + signal when it was killed.
  int Run(pid_t program);

  // Without a program of ours: until nothing reports any more, the time (0: without end)
  // is over, or the user has had enough.
  void RunFor(uint64_t duration_ms);

  // The mask before that: what the program must start with.
  const sigset_t& original_mask() const { return original_mask_; }

  // By target; filled while recording.
  const std::map<const Target*, History>& histories() const { return histories_; }

  // User and system time of the program and of those of its descendants that it has
  // waited for, seconds.
  double program_cpu_seconds() const { return program_cpu_seconds_; }

 private:
  void HandleSignals();
  void ReapProgram();
  void Observe();
  void ShowStatus();
  void ClearStatus();

  Session* session_;
  ScopedFd signals_;
  sigset_t original_mask_{};
  bool show_status_;
  pid_t program_ = -1;
  bool program_is_running_ = false;
  bool said_waiting_ = false;
  int stop_requests_ = 0;
  int exit_code_ = 0;
  double program_cpu_seconds_ = 0;
  uint64_t started_ns_ = 0;
  uint64_t observed_ns_ = 0;
  uint64_t shown_ns_ = 0;
  uint64_t observe_every_ns_;
  std::map<const Target*, History> histories_;
};

}  // namespace heapprofd
