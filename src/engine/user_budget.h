// What the targets of one user may take of something together: of the engine's memory
// over all of its sessions, of one recording's dumps on request. Targets are hostile, and
// an engine of root has those of many users: what one of them uses up is missing to his
// own targets only.
//
// One thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>

namespace heapprofd {

class UserBudget {
 public:
  // In one unit: bytes, call sites.
  UserBudget(uint64_t limit_of_user, uint64_t limit)
      : limit_of_user_(limit_of_user), limit_(limit) {}

  // That of this process's memory, in bytes: half of the machine's memory, one user half
  // of that.
  static UserBudget& OfEngine();

  // For anything at all, or for so much.
  bool HasRoom(uid_t user, uint64_t more = 0) const;

  uint64_t used() const { return used_; }

  // What one target has taken, until it is gone.
  class Account {
   public:
    Account(UserBudget* budget, uid_t user) : budget_(budget), user_(user) {}

    ~Account() { Set(0); }

    Account(const Account&) = delete;
    Account& operator=(const Account&) = delete;

    uid_t user() const { return user_; }

    void Set(uint64_t amount);

    bool HasRoom(uint64_t more = 0) const { return budget_->HasRoom(user_, more); }

   private:
    UserBudget* budget_;
    uid_t user_;
    uint64_t amount_ = 0;
  };

 private:
  uint64_t limit_of_user_;
  uint64_t limit_;
  uint64_t used_ = 0;
  std::map<uid_t, uint64_t> used_by_;
};

}  // namespace heapprofd
