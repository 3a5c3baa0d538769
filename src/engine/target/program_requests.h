// What the program itself asks for: dumps, and marks of moments. How many it gets is
// bounded, for one target and for all of a user.
//
// One thread: the session's. Stays until the profile goes: what was asked for stays, too.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "engine/user_budget.h"
#include "profile/model.h"

namespace heapprofd {

class ProgramRequests {
 public:
  // `profile` outlives it.
  explicit ProgramRequests(TargetProfile* profile) : profile_(profile) {}

  // In call sites: the user's other programs share it. Outlives this object; without one
  // there is a bound for this target alone.
  void set_budget(UserBudget* budget, uid_t user) { account_.emplace(budget, user); }

  // Keeps the mark, or counts it as refused.
  void KeepMark(Mark mark);

  // False: counted as refused.
  bool MayDump();

  // Keeps what profile->heaps are now.
  void KeepDump();

  // Those that nobody has taken yet, in order.
  std::vector<std::vector<HeapDump>> TakeDumps() {
    return std::exchange(profile_->requested_dumps, {});
  }

  // Of the dumps so far, in call sites.
  uint64_t cost() const { return cost_; }

 private:
  void Charge();

  TargetProfile* profile_;
  std::optional<UserBudget::Account> account_;
  size_t dumps_ = 0;
  uint64_t cost_ = 0;
};

}  // namespace heapprofd
