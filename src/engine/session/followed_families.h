// What becomes of processes that were attached to: their children, and the
// programs that they execute, are attached to in their turn.
//
// Nobody tells us when such a process forks or executes a program, so it is
// looked at now and then.
//
// One thread: the session's.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "engine/session/attached_targets.h"
#include "engine/session/caught_starts.h"
#include "engine/session/session_context.h"

namespace heapprofd {

class FollowedFamilies {
 public:
  // All outlive it.
  FollowedFamilies(SessionContext* context,
                   AttachedTargets* attached,
                   const CaughtStarts* starts)
      : context_(context), attached_(attached), starts_(starts) {}

  // When it is time; not while we wait for a process.
  void Follow();

  // The session is over: nobody is attached to again.
  void Forget() { execed_.clear(); }

 private:
  std::vector<pid_t> FindForked(bool looks_for_exec);
  bool IsGiven(pid_t pid) const;
  bool IsFollowed(pid_t pid, pid_t ancestor) const;
  void FollowChildren(pid_t pid);
  void FollowExec(pid_t pid);

  SessionContext* context_;
  AttachedTargets* attached_;
  const CaughtStarts* starts_;
  // Descendants that were attached to, or were not to be, or could not: with
  // the time of their start, and whether names did not matter.
  std::set<std::tuple<pid_t, uint64_t, bool>> children_seen_;
  std::map<pid_t, uint64_t> execed_;  // to be attached to again, until this time
  uint64_t followed_ns_ = 0;
  uint64_t exec_looked_ns_ = 0;
};

}  // namespace heapprofd
