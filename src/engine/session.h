// A recording session: its parts, and the loop that serves them. Targets report
// at its private socket, are handed over by a service, or are attached to.
//
// One thread, inside Poll or Serve; what may wait for a process is done apart
// (attach/apart.h), and this thread serves its sessions meanwhile.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "engine/fair_turn.h"
#include "engine/session/attached_targets.h"
#include "engine/session/caught_starts.h"
#include "engine/session/followed_families.h"
#include "engine/session/hook_watch.h"
#include "engine/session/missed_processes.h"
#include "engine/session/newcomers.h"
#include "engine/session/session_context.h"
#include "engine/session/session_socket.h"
#include "engine/session/session_targets.h"
#include "engine/session_config.h"
#include "engine/unrecorded.h"

namespace heapprofd {

class Session {
 public:
  // With a socket of its own (SessionSocket::Create).
  static Result<std::unique_ptr<Session>> Create(const SessionConfig& config);

  // Without a socket: whoever has one hands clients over to newcomers().
  static std::unique_ptr<Session> CreateWithoutSocket(const SessionConfig& config);

  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const SessionConfig& config() const { return context_.config(); }

  // nullptr: there is none.
  SessionSocket* socket() { return socket_.get(); }

  // Value of kSessionVariable for a program to be profiled. `pid`: the
  // program's own, used when children are not to be followed.
  std::string EnvironmentFor(pid_t pid) const;

  // Called every few milliseconds while the session waits for a process: what
  // must not wait with it. It may serve this session, too.
  void set_between(std::function<void()> between) {
    context_.set_between(std::move(between));
  }

  // Processes that report, and wait for their Welcome.
  Newcomers& newcomers() { return newcomers_; }

  // Processes that already run.
  AttachedTargets& attached() { return attached_; }

  // What those start.
  FollowedFamilies& families() { return families_; }

  // Programs that are recorded from their first allocation on, until Stop.
  CaughtStarts& starts() { return starts_; }

  // Running processes that are not recorded.
  MissedProcesses& missed() { return missed_; }

  const MissedProcesses& missed() const { return missed_; }

  // Drains rings until `turn_end_ns` (CLOCK_MONOTONIC; FairTurn), and lets go
  // of processes that have ended. Gives the milliseconds after which it should
  // be called again: 0 when there is more, INT_MAX when all is quiet. Part of
  // Poll, for callers that wait for themselves.
  int Serve(uint64_t turn_end_ns = MonotonicNs() + FairTurn::kTurnNs);

  // Serves clients and drains rings, waiting at most `max_wait_ms` when there
  // is nothing to do. `wake_fd` (or -1): returns early when it becomes
  // readable.
  void Poll(int max_wait_ms, int wake_fd);

  // Ends the session: clients go dormant, everything that reached the rings is
  // read, or counted as lost when that takes too long.
  void Stop();

  // The same; every target is marked.
  void StopAtGuardrail();

  bool is_stopped() const { return is_stopped_; }

  // All targets so far, and which of them still report.
  SessionTargets& targets() { return context_.targets(); }

  const SessionTargets& targets() const { return context_.targets(); }

  // Remembers what went wrong with a process, one line.
  void NoteProblem(std::string problem) { context_.problems().Note(std::move(problem)); }

  // What went wrong with processes that were attached to, one line each.
  std::vector<std::string> attach_problems() const { return context_.AllProblems(); }

  // Programs that were started in recorded processes, or expected, and never
  // reported.
  const ProgramWatch& programs() const { return context_.programs(); }

 private:
  explicit Session(const SessionConfig& config);

  SessionContext context_;  // of all that is below
  AttachedTargets attached_;
  CaughtStarts starts_;
  FollowedFamilies families_;
  HookWatch hook_watch_;
  Newcomers newcomers_;
  MissedProcesses missed_;
  std::unique_ptr<SessionSocket> socket_;
  bool is_stopped_ = false;
};

}  // namespace heapprofd
