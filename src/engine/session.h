// A recording session: a private socket where clients report, the targets that did, and
// the loop that drains them. One thread; everything happens inside Poll.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/scoped_fd.h"
#include "base/status.h"
#include "engine/session_config.h"
#include "engine/target.h"
#include "engine/tsc_clock.h"
#include "engine/unrecorded.h"
#include "unwind/module.h"
#include "wire/handshake.h"

namespace heapprofd {

class Session {
 public:
  // Creates the socket in a fresh directory that only this user can write to.
  static Result<std::unique_ptr<Session>> Create(const SessionConfig& config);

  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Value of kSessionVariable for a program to be profiled. `pid`: the program's own,
  // used when children are not to be followed.
  std::string EnvironmentFor(pid_t pid) const;

  const std::string& socket_path() const { return socket_path_; }

  // Serves clients and drains rings, waiting at most `max_wait_ms` when there is nothing
  // to do. `wake_fd` (or -1): returns early when it becomes readable.
  void Poll(int max_wait_ms, int wake_fd);

  // Ends the session: clients go dormant, everything that reached the rings is read.
  void Stop();

  // All targets so far, in order of arrival. Those whose process is gone are complete.
  const std::vector<std::unique_ptr<Target>>& targets() const { return targets_; }

  // Number of targets whose process still lives and reports.
  size_t live_targets() const { return live_.size(); }

  // The process `pid` is about to become `program`: known as unrecorded unless it
  // reports.
  void ExpectProgram(pid_t pid, const std::string& program);

  // Programs that were started in recorded processes, or expected, and never reported.
  std::vector<UnrecordedPrograms> Unrecorded() const { return programs_.Unrecorded(); }

  // Module files kept open, for symbolization.
  ModuleCache& modules() { return modules_; }

 private:
  struct LiveTarget {
    Target* target;
    ScopedFd pidfd;
  };

  explicit Session(const SessionConfig& config) : config_(config) {}

  Status Listen();
  void AcceptClients();
  void Hear(ScopedFd connection);
  void Welcome(const Hello& hello, pid_t pid, int connection);
  void HandleExecNotice(const ExecNotice& notice, pid_t sender);
  Status Adopt(pid_t pid, int connection);
  void Finish(size_t index, TargetEnd end);
  void ReapExited();
  // Returns how long to wait until the next time, in milliseconds.
  int DrainAll();

  SessionConfig config_;
  TscClock clock_;
  ModuleCache modules_;
  ProgramWatch programs_;
  ScopedFd listener_;
  std::string directory_;
  std::string socket_path_;
  std::vector<std::unique_ptr<Target>> targets_;
  std::vector<LiveTarget> live_;
  uint64_t busy_until_ns_ = 0;  // short waits until then
  int wait_ms_ = 1;             // the short wait
};

}  // namespace heapprofd
