#include "engine/target/interval_governor.h"

#include <algorithm>
#include <utility>

namespace heapprofd {

void IntervalGovernor::Look(uint64_t pending_bytes) {
  if (!drops_ && threshold_bytes_ == 0)
    return;
  const bool is_pressed = IsPressed(pending_bytes);
  const uint64_t now = clock_->last_ns();
  if (!is_pressed || now - changed_ns_ < kPauseNs)
    return;
  published_->DoubleIntervals();
  changed_ns_ = now;
}

bool IntervalGovernor::IsPressed(uint64_t pending_bytes) {
  const uint64_t size = memory_->ring_size();
  const uint64_t lost =
      memory_->client().ring.lost_records.load(std::memory_order_relaxed);
  const bool was_lost = std::exchange(lost_seen_, lost) != lost;
  const bool is_nearly_full = pending_bytes > size / 4 * 3;
  return (drops_ && (was_lost || is_nearly_full)) ||
         size - std::min(size, pending_bytes) < threshold_bytes_;
}

}  // namespace heapprofd
