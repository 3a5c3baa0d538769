// A recording session: the targets that report at its private socket or are handed over
// by a service, and the loop that drains them. One thread, inside Poll or Serve; what may
// wait for a process is done apart (attach/apart.h).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "attach/attached_process.h"
#include "attach/gate/exec_watcher.h"
#include "base/files/guarded_read.h"
#include "base/scoped_fd.h"
#include "base/status.h"
#include "engine/fair_turn.h"
#include "engine/pending_clients.h"
#include "engine/session_config.h"
#include "engine/target/target.h"
#include "engine/tsc_clock.h"
#include "engine/unrecorded.h"
#include "unwind/module.h"
#include "wire/handshake.h"

namespace heapprofd {

class Session {
 public:
  // Creates the socket in a fresh directory that only this user can write to. Root's can
  // be used by everybody who knows the name.
  static Result<std::unique_ptr<Session>> Create(const SessionConfig& config);

  // Without a socket: whoever has one hands clients over by Adopt.
  static std::unique_ptr<Session> CreateWithoutSocket(const SessionConfig& config);

  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Value of kSessionVariable for a program to be profiled. `pid`: the program's own,
  // used when children are not to be followed.
  std::string EnvironmentFor(pid_t pid) const;

  const std::string& socket_path() const { return socket_path_; }

  const SessionConfig& config() const { return config_; }

  // What else arrives at the session's socket: a connection whose first word is
  // kControlMagic (wire/control.h).
  using ControlHandler = std::function<void(ScopedFd connection)>;

  void set_control_handler(ControlHandler handler) {
    control_handler_ = std::move(handler);
  }

  // Called every few milliseconds while the session waits for a process: what must not
  // wait with it. It may serve this session, too.
  void set_between(std::function<void()> between) { between_ = std::move(between); }

  // Gets the events of all targets that come from now on; outlives this object.
  void set_events(AllocationEvents* events) { events_ = events; }

  // A process that waits for its Welcome.
  struct Newcomer {
    pid_t pid;
    uid_t user;  // this and the group: when it connected
    gid_t group;
    int connection;
    ScopedFd process;   // pidfd
    bool from_startup;  // it has not run yet
  };

  // Makes it a target.
  Status Adopt(Newcomer newcomer);

  // Records a process that already runs, from now on. kUnavailable, kNotFound: it cannot
  // be attached to, and why.
  Status Attach(pid_t pid);

  // From now on, and until Stop, records every program of a matching name from its first
  // allocation on. The functions of `filter` are called on other threads.
  Status CatchStarts(ExecWatcher::Filter filter, const ExecWatcher::MakeGate& make_gate);

  // In a child of ours that outlives us, perhaps.
  void LeaveToParent();

  // Readable when a program has been caught, which then waits for Serve; -1: never.
  int caught_fd() const { return exec_watcher_ != nullptr ? exec_watcher_->fd() : -1; }

  // The process has become another program; nothing when it is no target.
  void EndTarget(pid_t pid);

  // Notes a process that this session wanted and another one has.
  void NoteRejected(const ProcessDescription& process);

  // Drains rings until `turn_end_ns` (CLOCK_MONOTONIC; FairTurn), and lets go of
  // processes that have ended. Gives the milliseconds after which it should be called
  // again: 0 when there is more, INT_MAX when all is quiet. Part of Poll, for callers
  // that wait for themselves.
  int Serve(uint64_t turn_end_ns);

  int Serve() { return Serve(MonotonicNs() + FairTurn::kTurnNs); }

  // Serves clients and drains rings, waiting at most `max_wait_ms` when there is nothing
  // to do. `wake_fd` (or -1): returns early when it becomes readable.
  void Poll(int max_wait_ms, int wake_fd);

  // Ends the session: clients go dormant, everything that reached the rings is read, or
  // counted as lost when that takes too long.
  void Stop();

  // The same; every target is marked.
  void StopAtGuardrail();

  bool is_stopped() const { return is_stopped_; }

  // All targets so far, in order of arrival. Those whose process is gone are complete.
  const std::vector<std::unique_ptr<Target>>& targets() const { return targets_; }

  // Running processes of a wanted name that are other users', and ours may not be root's.
  void set_others_processes(size_t count) { others_processes_ = count; }

  size_t others_processes() const { return others_processes_; }

  // Processes that another session had already.
  const std::vector<std::unique_ptr<TargetProfile>>& rejected() const {
    return rejected_;
  }

  // What went wrong with processes that were attached to, one line each: programs that
  // could not be caught, hooks that could not be taken out.
  std::vector<std::string> attach_problems() const;

  // Of the processes attached to whose hooks are out again.
  const std::vector<AttachReport>& attach_reports() const { return attach_reports_; }

  // Number of targets whose process still lives and reports, or whose ring has not been
  // read to its end.
  size_t live_targets() const { return live_.size(); }

  // The first kind only.
  size_t CountReporting() const;

  // Forked children that may yet report (engine/silent_processes.h).
  size_t CountSilent() const;

  // True when `pid` lives and reports.
  bool IsProfiling(pid_t pid) const;

  // The process is attached to for malloc's heap alone: what a library of its own says is
  // not wanted.
  bool SeesAllOf(pid_t pid) const;

  // The process `pid` is about to become `program`: known as unrecorded unless it
  // reports.
  void ExpectProgram(pid_t pid, const std::string& program);

  // Programs that were started in recorded processes, or expected, and never reported.
  std::vector<UnrecordedPrograms> Unrecorded() const { return programs_.Unrecorded(); }

  // Module files kept open, for symbolization.
  ModuleCache& modules() { return modules_; }

 private:
  static constexpr size_t kMaxTargets = 100'000;
  static constexpr size_t kMaxRejected = 10'000;
  static constexpr size_t kMaxProblems = 1000;
  // After activity the rings are looked at more often for so long.
  static constexpr uint64_t kBusyNs = 300'000'000;

  // Of a session with a socket. Those who have a share of their own are the users that
  // programs of root's session have become.
  static constexpr PendingClients::Limits kClientLimits = {
      .all = 1024, .of_user = 128, .patience_ns = 4'000'000'000, .per_turn = 16};

  struct LiveTarget {
    Target* target = nullptr;
    ScopedFd pidfd = ScopedFd();  // invalid: it has ended
    // nullptr: its hooks are not ours to take out, or not in yet.
    std::shared_ptr<AttachedProcess> attached = nullptr;
    bool is_starting = false;   // it has been caught, and its hooks go in
    bool was_attached = false;  // its client was not preloaded
    uint32_t forks_seen = 0;
    // Of one that has ended: where its ring does, and until when that is read.
    uint64_t rest_end = 0;
    uint64_t give_up_ns = 0;
  };

  explicit Session(const SessionConfig& config) : config_(config) {}

  Status Listen();
  Status OpenToOtherUsers();
  bool ServeClients();
  bool Wants(pid_t pid) const;
  void Hear(PendingClients::Client& client, uint64_t magic);
  void Welcome(const Hello& hello, const PendingClients::Client& client);
  void Decline(pid_t pid, const std::string& why);
  Status TakeIn(Newcomer newcomer);
  void HandleExecNotice(const ExecNotice& notice, pid_t sender);
  // Whether there is room for one more target.
  Status CheckRoom(pid_t pid) const;
  LiveTarget& AddTarget(std::unique_ptr<Target> target, ScopedFd pidfd);
  // It has no hooks, and never was one.
  void Forget(const Target* target);
  // The process of a target is gone; what it has left in its ring is still to be read.
  void NoteEnd(LiveTarget& live, TargetEnd end);
  // Of those that are read.
  void ReleaseEnded();
  void ReadAllRings();
  void Release(const LiveTarget& live);
  void LookAfterChildren();
  void LeaveEarliestChildren();
  void TakeHooksOut(const std::shared_ptr<AttachedProcess>& attached);
  // While we wait for a process.
  void ServeMeanwhile();
  void NoteProblem(std::string problem);
  void NoteStartProblem(std::string problem);
  Status PutClientIn(pid_t pid);
  Status PlaceAndHook(pid_t pid);
  AttachedProcess::Options AttachOptions() const;
  Result<std::shared_ptr<AttachedProcess>> Place(pid_t pid);
  Status PutHooksIn(const std::shared_ptr<AttachedProcess>& attached);
  void FollowAttached();

  struct Relative {
    pid_t pid;
    uint64_t start;  // of the process, in clock ticks
  };

  // Descendants of a process, its children first; without those whose parent has ended.
  static std::vector<Relative> ReadFamily(pid_t ancestor);
  std::vector<Relative> FamilyOf(pid_t pid);
  bool IsGiven(pid_t pid) const;
  bool IsFollowed(pid_t pid, pid_t ancestor) const;
  void FollowChildren(pid_t pid);
  void FollowExec(pid_t pid);
  void RestoreChildren(pid_t pid);
  Result<Target*> AddAttached(AttachedProcess* attached, bool from_startup);
  void AdoptCaught();
  Status Adopt(const std::shared_ptr<ExecWatcher::Caught>& caught);

  // A program that was caught, and its hooks go in.
  struct Accepted {
    std::shared_ptr<ExecWatcher::Caught> caught;
    Target* target;
    uint64_t until_ns;  // then it is given up; CLOCK_MONOTONIC
  };

  void TakeConclusions();
  void EndCatching();
  void ReapExited();
  // Returns how long to wait until the next time, in milliseconds.
  int DrainAll(uint64_t turn_end_ns);
  // True: there is more.
  bool DrainOne(LiveTarget& live);
  size_t CountUsers() const;

  SessionConfig config_;
  TscClock clock_;
  ModuleCache modules_;
  ProgramWatch programs_;
  std::shared_ptr<AllocatorFinder> allocators_ = std::make_shared<AllocatorFinder>();
  pid_t attaching_ = 0;  // to this process, right now
  std::function<void()> between_;
  FairTurn turn_;
  size_t first_ = 0;  // of live_, in the next turn
  std::shared_ptr<ExecWatcher> exec_watcher_;
  std::vector<Accepted> accepted_;
  std::vector<std::string> attach_problems_;
  size_t others_processes_ = 0;
  // Of programs that could not be caught, by process: those with our library may have
  // come by themselves.
  std::vector<std::pair<pid_t, std::string>> start_problems_;
  std::vector<AttachReport> attach_reports_;
  // Descendants of processes attached to that were attached to, or were not to be, or
  // could not: with the time of their start, and whether names did not matter.
  std::set<std::tuple<pid_t, uint64_t, bool>> children_seen_;
  std::deque<Target*> awaiting_children_;  // ended, with children that still count
  bool has_left_children_ = false;
  uint64_t look_after_children_ns_ = 0;  // not before
  uint64_t late_reads_before_ = LateReads();
  std::map<uint64_t, pid_t> attached_seeds_;  // of all so far
  std::map<pid_t, uint64_t> execed_;          // to be attached to again, until this time
  uint64_t followed_ns_ = 0;
  uint64_t exec_looked_ns_ = 0;
  pid_t program_ = 0;  // that was started for this session; 0: none
  ScopedFd listener_;
  PendingClients clients_{kClientLimits};
  std::string parent_directory_;  // empty: there is none
  std::string directory_;
  std::string socket_path_;
  // Dumps that programs ask for, in call sites (ProgramRequests::set_budget).
  static constexpr uint64_t kRequestedOfUser = 2'000'000;
  static constexpr uint64_t kRequestedOfAll = 4 * kRequestedOfUser;
  UserBudget requested_dumps_{kRequestedOfUser, kRequestedOfAll};
  std::vector<std::unique_ptr<Target>> targets_;
  std::vector<LiveTarget> live_;
  const Target* looking_ = nullptr;  // for ended owners of its fork slots: one at a time
  std::vector<std::unique_ptr<TargetProfile>> rejected_;
  ControlHandler control_handler_;
  AllocationEvents* events_ = nullptr;
  bool is_stopped_ = false;
  bool is_behind_ = false;      // somebody who has spoken waits for his turn
  uint64_t busy_until_ns_ = 0;  // short waits until then
  int wait_ms_ = 1;             // the short wait
};

}  // namespace heapprofd
