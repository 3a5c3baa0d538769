// What becomes of processes that were attached to: the children that they have
// from then on, and the programs that all of these execute, are attached to in
// their turn.
//
// Nobody tells us when such a process forks or executes a program, so it is
// looked at now and then: often for children that allocate, since their hooks
// count themselves, rarely for those that only execute a program (posix_spawn),
// of which the parent's memory tells nothing. Those whose parent has ended, as
// daemons begin, are in nobody's list of children: they are known by the thread
// id that they leave where they count.
//
// One thread: the session's.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "engine/session/attached_targets.h"
#include "engine/session/caught_starts.h"
#include "engine/session/process_family.h"
#include "engine/session/session_context.h"

namespace heapprofd {

class FollowedFamilies {
 public:
  // All outlive it.
  FollowedFamilies(SessionContext* context,
                   AttachedTargets* attached,
                   const CaughtStarts* starts)
      : context_(context), attached_(attached), starts_(starts) {}

  // Of a process that is about to be attached to: what it has started before is
  // not followed. Gives those of its descendants, which are still there.
  std::vector<pid_t> LeaveDescendantsOf(pid_t pid);

  // When it is time; not while we wait for a process.
  void Follow();

  // The session is over: nobody is attached to again.
  void Forget() { changing_.clear(); }

 private:
  using Identity = std::pair<pid_t, uint64_t>;  // with the time of its start

  // How a child was found: in its parent's list, or by what it counts.
  enum class Found { kInFamily, kByItsCounts };

  std::vector<pid_t> FindParents(bool looks_at_all);
  void NoteExecs();
  bool IsGiven(pid_t pid) const;
  bool IsFollowed(pid_t pid, pid_t ancestor) const;
  void FollowChildren(pid_t pid);
  void FollowOrphans();
  bool IsNew(const Relative& child, pid_t ancestor, Found found);
  void FollowChild(const Relative& child, pid_t ancestor, Found found);
  void FollowChanging(pid_t pid);

  SessionContext* context_;
  AttachedTargets* attached_;
  const CaughtStarts* starts_;
  std::set<Identity> left_alone_;  // descendants that were there before
  // Descendants that were attached to, or were not to be, or could not: and
  // whether names did not matter.
  std::set<std::pair<Identity, bool>> children_seen_;
  std::set<Identity> orphans_seen_;  // the same by what they count
  // About to become another program, or in the middle of it: they are tried
  // until this time.
  std::map<pid_t, uint64_t> changing_;
  // What a memory looked like when the children that count there were last looked
  // for: how many had begun to, and how many still did.
  std::map<const Target*, uint64_t> counting_seen_;
  uint64_t followed_ns_ = 0;
  uint64_t next_orphan_look_ns_ = 0;
  uint64_t next_look_at_all_ns_ = 0;
  uint64_t exec_looked_ns_ = 0;
  uint64_t looked_for_ns_ = 0;  // how long the looks have taken, attaching apart
};

}  // namespace heapprofd
