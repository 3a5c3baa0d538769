// When the programs that lie dormant are woken, for whom. A wake makes each of them ask
// at the socket, those of all users: who wants one again and again waits longer and
// longer, from 50 ms to a second, and what he wants then makes nobody else wait.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>

namespace heapprofd {

// Times are those of MonotonicNs.
class WakePacing {
 public:
  // Something has begun that programs of this user should ask for, all users' for root's.
  void Want(uid_t user) { users_[user].is_wanted = true; }

  // It has not come yet.
  bool IsWanted(uid_t user) const;

  // Whether it is time. Then it has come for all who wanted it.
  bool TakeDue(uint64_t now_ns);

  // -1: nobody wants one.
  int MillisecondsToNext(uint64_t now_ns) const;

 private:
  struct Account {
    bool is_wanted = false;
    uint64_t last_ns = 0;
    uint64_t pause_ns = 0;  // after the last one; halves in every second
  };

  uint64_t WaitNs(uid_t user, const Account& account, uint64_t now_ns) const;

  uint64_t last_ns_ = 0;  // whoever wanted it
  std::map<uid_t, Account> users_;
};

}  // namespace heapprofd
