// Visitors that wait for one and the same thing, let through by turns of their users, so
// that nobody waits for a crowd of somebody else's.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <map>

#include "service/visitor.h"

namespace heapprofd {

class VisitorQueue {
 public:
  bool empty() const { return by_user_.empty(); }

  size_t size() const { return size_; }

  size_t size_of(uid_t user) const;

  void Add(Visitor visitor);

  // Of the user whose turn it is, who has been waiting the longest. There must be one.
  const Visitor& next() const { return Turn()->second.front(); }

  Visitor Take();

  // Whose deadline is over.
  std::deque<Visitor> TakeOverdue(uint64_t now_ns);

  void ForEach(const std::function<void(Visitor&)>& visit);

  void clear();

 private:
  using ByUser = std::map<uid_t, std::deque<Visitor>>;

  ByUser::const_iterator Turn() const;

  ByUser by_user_;  // none is empty
  size_t size_ = 0;
  uid_t last_served_ = 0;
};

}  // namespace heapprofd
