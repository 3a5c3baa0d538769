// Targets that have ended and have forked children that still count in their
// memory: looked after until those have ended as well, at a bounded cost.
//
// One thread: the session's. What looks cost is accounted for all sessions of
// this process together, which one thread serves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "engine/target/target.h"

namespace heapprofd {

class LeftChildren {
 public:
  // Takes over a target whose children are left. Empty, or the first time what
  // is wrong: there are too many, and the earliest are counted no further.
  std::string Add(Target* target);

  // For a moment, when it is time.
  void Look();

  // The session is over.
  void LeaveAll();

  size_t size() const { return targets_.size(); }

 private:
  std::deque<Target*> targets_;  // the session's
  bool has_left_some_ = false;   // too early
  uint64_t look_ns_ = 0;         // not before
};

}  // namespace heapprofd
