// Targets that have ended and have forked children that still count in their
// memory: looked after until those have ended as well, at a bounded cost. Those that
// could not ask for a session meanwhile are named then.
//
// One thread: the session's. What looks cost is accounted for all sessions of
// this process together, which one thread serves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "engine/target/target.h"
#include "engine/unrecorded.h"

namespace heapprofd {

// Tells `programs` of those of `all` that it has not been told of.
void NameUnprofiled(const Target& target,
                    const UnprofiledCounts& all,
                    const UnprofiledCounts& named,
                    ProgramWatch* programs);

class LeftChildren {
 public:
  // Outlives it.
  explicit LeftChildren(ProgramWatch* programs) : programs_(programs) {}

  // Takes over a target whose children are left. `named`: what `programs` has been told
  // of them. Empty, or the first time what is wrong: there are too many, and the earliest
  // are counted no further.
  std::string Add(Target* target, const UnprofiledCounts& named);

  // For a moment, when it is time.
  void Look();

  // It is no target any more.
  void Forget(const Target* target) {
    std::erase_if(targets_, [target](const Left& left) { return left.target == target; });
  }

  // The session is over.
  void LeaveAll();

  // `visit(Target&)` of each.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (const Left& left : targets_)
      visit(*left.target);
  }

  size_t size() const { return targets_.size(); }

 private:
  struct Left {
    Target* target;  // the session's
    UnprofiledCounts named;
  };

  void NameMore(const Left& left) const;

  ProgramWatch* programs_;
  std::deque<Left> targets_;
  bool has_left_some_ = false;  // too early
  uint64_t look_ns_ = 0;        // not before
};

}  // namespace heapprofd
