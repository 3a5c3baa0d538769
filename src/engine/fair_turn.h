// Who may have how much of the engine's time: a turn of all targets together is bounded,
// and shared out by user, so that whatever the processes of one do, those of the others
// have their rings read and get their answers.
//
// One thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>

namespace heapprofd {

class FairTurn {
 public:
  // All targets together; whoever says Hello waits no longer than this and one step that
  // cannot be interrupted.
  static constexpr uint64_t kTurnNs = 30'000'000;

  // A turn that ends at `end_ns`, of targets of so many users.
  void Begin(uint64_t now_ns, uint64_t end_ns, size_t users);

  // Time that a target of `user` may have now; 0: the next turn is his.
  uint64_t Left(uid_t user, uint64_t now_ns) const;

  void Note(uid_t user, uint64_t spent_ns);

 private:
  uint64_t end_ns_ = 0;
  uint64_t share_ns_ = 0;
  // What a user has had: also of earlier turns, as far as it was more than his share.
  std::map<uid_t, uint64_t> spent_ns_;
};

}  // namespace heapprofd
