// A recording session: a private socket where clients report, the targets that did, and
// the loop that drains them. One thread; everything happens inside Poll.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "attach/attached_process.h"
#include "attach/exec_watcher.h"
#include "base/scoped_fd.h"
#include "base/status.h"
#include "engine/session_config.h"
#include "engine/target.h"
#include "engine/tsc_clock.h"
#include "unwind/module.h"

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

  // Records a process that already runs, from now on. kUnavailable, kNotFound: it cannot
  // be attached to, and why.
  Status Attach(pid_t pid);

  // From now on, and until Stop, records every program of a matching name from its first
  // allocation on. `matches` is called on another thread.
  Status CatchStarts(ExecWatcher::Matches matches);

  bool is_catching_starts() const { return exec_watcher_ != nullptr; }

  // Serves clients and drains rings, waiting at most `max_wait_ms` when there is nothing
  // to do. `wake_fd` (or -1): returns early when it becomes readable.
  void Poll(int max_wait_ms, int wake_fd);

  // Ends the session: clients go dormant, everything that reached the rings is read.
  void Stop();

  // All targets so far, in order of arrival. Those whose process is gone are complete.
  const std::vector<std::unique_ptr<Target>>& targets() const { return targets_; }

  // What went wrong with processes that were attached to, one line each: programs that
  // could not be caught, hooks that could not be taken out.
  const std::vector<std::string>& attach_problems() const { return attach_problems_; }

  // Of the processes attached to whose hooks are out again.
  const std::vector<AttachReport>& attach_reports() const { return attach_reports_; }

  // Number of targets whose process still lives and reports.
  size_t live_targets() const { return live_.size(); }

  // Module files kept open, for symbolization.
  ModuleCache& modules() { return modules_; }

 private:
  struct LiveTarget {
    Target* target;
    ScopedFd pidfd;
    std::unique_ptr<AttachedProcess> attached;  // nullptr: the client was preloaded
  };

  explicit Session(const SessionConfig& config) : config_(config) {}

  Status Listen();
  void AcceptClients();
  void Welcome(ScopedFd connection);
  Status Adopt(pid_t pid, int connection);
  void Finish(size_t index, TargetEnd end);
  void TakeHooksOut(LiveTarget& live);
  Result<Target*> AddAttached(AttachedProcess* attached, ScopedFd pidfd);
  void AdoptCaught();
  Status Adopt(ExecWatcher::Caught& caught);
  void ReapExited();
  bool DrainAll();

  SessionConfig config_;
  TscClock clock_;
  ModuleCache modules_;
  AllocatorFinder allocators_;
  std::unique_ptr<ExecWatcher> exec_watcher_;
  std::vector<std::string> attach_problems_;
  std::vector<AttachReport> attach_reports_;
  ScopedFd listener_;
  std::string directory_;
  std::string socket_path_;
  std::vector<std::unique_ptr<Target>> targets_;
  std::vector<LiveTarget> live_;
  uint64_t busy_until_ns_ = 0;  // short waits until then
};

}  // namespace heapprofd
