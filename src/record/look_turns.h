// Whose turn it is to be looked at for idle memory where one dump has no time for all
// processes: the next one begins with the first that was not reached. Who had all of the
// time and did not get through is not the first again, so that the others have theirs.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace heapprofd {

class LookTurns {
 public:
  // A dump begins of processes in this order.
  void Begin(std::vector<pid_t> order) {
    order_ = std::move(order);
    const auto next = std::ranges::find(order_, std::exchange(next_, 0));
    first_ = next == order_.end() ? 0 : static_cast<size_t>(next - order_.begin());
  }

  bool Has(size_t place) const { return place >= first_; }

  // There was no time for the process at this place, or none left.
  void Miss(size_t place) {
    if (next_ != 0)
      return;
    const size_t next = place == first_ ? place + 1 : place;
    next_ = next < order_.size() ? order_[next] : 0;
  }

 private:
  std::vector<pid_t> order_;
  size_t first_ = 0;
  pid_t next_ = 0;  // that the next dump begins with; 0: with the first
};

}  // namespace heapprofd
