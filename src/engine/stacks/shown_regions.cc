#include "engine/stacks/shown_regions.h"

#include <algorithm>

namespace heapprofd {

bool ShownRegions::LookAgain() {
  constexpr uint64_t kPauseNs = 50'000'000;
  return shown_ns_ == 0 ||
         (clock_->last_ns() - shown_ns_ >= kPauseNs && code_->RefreshIfCheap());
}

// Stacks are more often mapped late, above the executable and its heap: the highest are
// kept.
void ShownRegions::Show() {
  shown_ns_ = std::max<uint64_t>(clock_->last_ns(), 1);
  const auto& regions = code_->writable_regions();
  const size_t count = std::min(regions.size(), kMaxStackRegions);
  const size_t first = regions.size() - count;
  shown_->version.exchange(++version_, std::memory_order_acq_rel);
  for (size_t i = 0; i < count; ++i) {
    StackRegions::Region& region = shown_->regions[i];
    region.low.store(regions[first + i].start, std::memory_order_relaxed);
    region.high.store(regions[first + i].end, std::memory_order_relaxed);
  }
  shown_->count.store(static_cast<uint32_t>(count), std::memory_order_relaxed);
  shown_->version.store(++version_, std::memory_order_release);
}

}  // namespace heapprofd
