#include "engine/fair_turn.h"

#include <algorithm>

namespace heapprofd {

void FairTurn::Begin(uint64_t now_ns, uint64_t end_ns, size_t users) {
  end_ns_ = end_ns;
  share_ns_ = end_ns > now_ns ? (end_ns - now_ns) / std::max<size_t>(users, 1) : 0;
  if (users <= 1)
    spent_ns_.clear();  // nobody waits for him
  for (auto& [user, spent_ns] : spent_ns_)
    spent_ns -= std::min(spent_ns, share_ns_);
  std::erase_if(spent_ns_, [](const auto& item) { return item.second == 0; });
}

uint64_t FairTurn::Left(uid_t user, uint64_t now_ns) const {
  const auto spent = spent_ns_.find(user);
  const uint64_t spent_ns = spent != spent_ns_.end() ? spent->second : 0;
  if (now_ns >= end_ns_ || spent_ns >= share_ns_)
    return 0;
  return std::min(share_ns_ - spent_ns, end_ns_ - now_ns);
}

void FairTurn::Note(uid_t user, uint64_t spent_ns) {
  spent_ns_[user] += spent_ns;
}

}  // namespace heapprofd
