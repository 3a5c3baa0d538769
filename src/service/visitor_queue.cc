#include "service/visitor_queue.h"

#include <utility>

namespace heapprofd {

size_t VisitorQueue::size_of(uid_t user) const {
  const auto found = by_user_.find(user);
  return found != by_user_.end() ? found->second.size() : 0;
}

void VisitorQueue::Add(Visitor visitor) {
  by_user_[visitor.rights.user].push_back(std::move(visitor));
  ++size_;
}

VisitorQueue::ByUser::const_iterator VisitorQueue::Turn() const {
  const auto next = by_user_.upper_bound(last_served_);
  return next != by_user_.end() ? next : by_user_.begin();
}

Visitor VisitorQueue::Take() {
  last_served_ = Turn()->first;
  const auto next = by_user_.find(last_served_);
  Visitor visitor = std::move(next->second.front());
  next->second.pop_front();
  if (next->second.empty())
    by_user_.erase(next);
  --size_;
  return visitor;
}

std::deque<Visitor> VisitorQueue::TakeOverdue(uint64_t now_ns) {
  std::deque<Visitor> overdue;
  for (auto& [user, queue] : by_user_) {
    while (!queue.empty() && queue.front().deadline_ns <= now_ns) {
      overdue.push_back(std::move(queue.front()));
      queue.pop_front();
    }
  }
  size_ -= overdue.size();
  std::erase_if(by_user_, [](const auto& entry) { return entry.second.empty(); });
  return overdue;
}

void VisitorQueue::ForEach(const std::function<void(Visitor&)>& visit) {
  for (auto& [user, queue] : by_user_) {
    for (Visitor& visitor : queue)
      visit(visitor);
  }
}

void VisitorQueue::clear() {
  by_user_.clear();
  size_ = 0;
}

}  // namespace heapprofd
