#include "engine/user_budget.h"

#include <unistd.h>

#include <algorithm>

#include "base/page_size.h"

namespace heapprofd {

UserBudget& UserBudget::OfEngine() {
  static UserBudget budget = [] {
    const auto memory =
        static_cast<uint64_t>(std::max(sysconf(_SC_PHYS_PAGES), 0L)) * PageSize();
    return UserBudget(memory / 4, memory / 2);
  }();
  return budget;
}

bool UserBudget::HasRoom(uid_t user, uint64_t more) const {
  const auto used = used_by_.find(user);
  return used_ + more < limit_ &&
         (used != used_by_.end() ? used->second : 0) + more < limit_of_user_;
}

void UserBudget::Account::Set(uint64_t amount) {
  budget_->used_ += amount - amount_;
  uint64_t& of_user = budget_->used_by_[user_];
  of_user += amount - amount_;
  if (of_user == 0)
    budget_->used_by_.erase(user_);
  amount_ = amount;
}

}  // namespace heapprofd
