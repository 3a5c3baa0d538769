// The targets of a session: those whose rings are read, and those that have
// ended and are complete.
//
// One thread: the session's. It owns them all; they move no more once they are
// there.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "attach/attached_process.h"
#include "base/scoped_fd.h"
#include "base/status.h"
#include "engine/session/drain_loop.h"
#include "engine/session/left_children.h"
#include "engine/session/live_target.h"
#include "engine/target/allocation_events.h"
#include "engine/target/target.h"
#include "engine/tsc_clock.h"
#include "engine/unrecorded.h"
#include "engine/user_budget.h"

namespace heapprofd {

class SessionTargets {
 public:
  // Takes the hooks of one that has ended out of what is left of it.
  using TakeHooksOut = std::function<void(const std::shared_ptr<AttachedProcess>&)>;

  // All outlive it. `problems` gets a line for each problem.
  SessionTargets(TscClock* clock,
                 ProgramWatch* programs,
                 std::function<void(std::string)> problems,
                 TakeHooksOut take_hooks_out);

  // Gets the events of all targets that come from now on; outlives this object.
  void set_events(AllocationEvents* events) { events_ = events; }

  // Whether there is room for one more.
  Status CheckRoom(pid_t pid) const;

  // The reference ends with the next change.
  LiveTarget& Add(std::unique_ptr<Target> target, ScopedFd pidfd);

  // It has no hooks, and never was one.
  void Forget(const Target* target);

  // In order of arrival. Those whose process is gone are complete.
  const std::vector<std::unique_ptr<Target>>& all() const { return all_; }

  // Whose process still lives and reports, or whose ring has not been read to
  // its end.
  std::vector<LiveTarget>& live() { return live_; }

  const std::vector<LiveTarget>& live() const { return live_; }

  size_t size() const { return live_.size(); }

  // Of these, the first kind only.
  size_t CountReporting() const;

  // nullptr: it does not live, or does not report.
  const LiveTarget* FindReporting(pid_t pid) const;

  bool IsProfiling(pid_t pid) const { return FindReporting(pid) != nullptr; }

  // nullptr: it is none that lives.
  LiveTarget* Find(const Target* target);

  // Some that have ended may have children that count for them.
  bool has_left_children() const { return left_.size() > 0; }

  // Where forked children of those that were attached to count before they are
  // attached to themselves, also of those that have ended. Until anything is
  // waited for.
  struct ForkMemory {
    const Target* target;
    const ClientBlock* client;
  };

  std::vector<ForkMemory> ForkMemories() const;

  // The process of a target is gone; what it has left in its ring is still to
  // be read.
  static void NoteEnd(LiveTarget& live, TargetEnd end);

  // The process has become another program; nothing when it is no target.
  void NoteExec(pid_t pid);

  // A descriptor each, by which the end of a process is seen.
  void AddTo(std::vector<pollfd>* fds) const;

  // One turn for all, see DrainLoop.
  int Drain(uint64_t turn_end_ns) { return loop_.Turn(live_, turn_end_ns); }

  // Notes which processes have ended.
  void ReapExited();

  // Lets go of those that have ended and are read, and looks after their
  // children.
  void ReleaseEnded();

  // All of them end: what is in their rings is read, or counted as lost when
  // that takes too long. `between`: called now and then.
  void StopAll(const std::function<void()>& between);

 private:
  static constexpr size_t kMaxTargets = 100'000;
  // Dumps that programs ask for, in call sites (ProgramRequests::set_budget).
  static constexpr uint64_t kRequestedOfUser = 2'000'000;
  static constexpr uint64_t kRequestedOfAll = 4 * kRequestedOfUser;

  void ReadAllRings(const std::function<void()>& between);
  void LookForIdle(const std::function<void()>& between);
  void Release(const LiveTarget& live, bool keeps_children);

  TscClock* clock_;
  ProgramWatch* programs_;
  std::function<void(std::string)> problems_;
  bool has_told_idle_ = false;  // why that is not known, or may be wrong
  TakeHooksOut take_hooks_out_;
  AllocationEvents* events_ = nullptr;
  UserBudget requested_dumps_{kRequestedOfUser, kRequestedOfAll};
  std::vector<std::unique_ptr<Target>> all_;
  std::vector<LiveTarget> live_;
  DrainLoop loop_;
  LeftChildren left_;
};

}  // namespace heapprofd
