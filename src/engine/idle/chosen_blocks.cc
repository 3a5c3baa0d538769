#include "engine/idle/chosen_blocks.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/clock.h"
#include "base/page_size.h"
#include "base/row_index.h"
#include "profile/estimate.h"

namespace heapprofd {

// A power of two: what is live may change a little without changing the choice.
ChosenBlocks::ChosenBlocks(const LiveHeap& heap, uint64_t secret) : secret_(secret) {
  if (heap.live_samples() > kMax)
    threshold_ = std::exp2(std::ceil(std::log2(
        std::max(1.0, 2 * heap.total().live().bytes / static_cast<double>(kMax)))));
}

bool ChosenBlocks::Choose(const LiveHeap& heap, uint64_t now_ns, uint64_t end_ns) {
  const auto consider = [&](const SampledAllocation& sample, uint64_t age) {
    Consider(sample, now_ns - std::min(now_ns, age));
  };
  while (heap.VisitSomeLive(&at_, now_ns, consider)) {
    if (MonotonicNs() >= end_ns)
      return false;
  }
  Arrange();
  return true;
}

void ChosenBlocks::Consider(const SampledAllocation& sample, uint64_t born_ns) {
  const double bytes = EstimateOfSample(sample.size, sample.interval).bytes;
  const double lot = std::ldexp(static_cast<double>(Mix(sample.address ^ secret_)), -64);
  if (sample.size == 0 || bytes <= lot * threshold_)
    return;
  ChosenBlock block{.address = sample.address,
                    .size = std::min(sample.size, ~sample.address),
                    .bytes = std::max(bytes, threshold_),
                    .born_ns = born_ns,
                    .callsite = sample.callsite};
  if (blocks_.size() < kMax && block.size > 0)
    blocks_.push_back(block);
  else
    left_out_bytes_ += block.bytes;
}

// A block that overlaps another was freed unseen, or never was; of two with one address
// the younger is there.
void ChosenBlocks::Arrange() {
  std::ranges::sort(blocks_, {}, [](const ChosenBlock& block) {
    return std::tuple(block.address, ~block.born_ns);
  });
  size_t kept = 0;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const ChosenBlock block = blocks_[i];
    const bool was_seen_twice = kept > 0 && blocks_[kept - 1].address == block.address;
    if (kept == 0 || block.address >= blocks_[kept - 1].end())
      blocks_[kept++] = block;
    else if (!was_seen_twice)
      left_out_bytes_ += block.bytes;
  }
  blocks_.resize(kept);
}

std::vector<uint64_t> ChosenBlocks::Pages() const {
  std::vector<uint64_t> pages;
  uint64_t most = 0;
  for (const ChosenBlock& block : blocks_)
    most += std::min<uint64_t>(kMaxPages, block.size / PageSize() + 2);
  pages.reserve(std::min<uint64_t>(kMaxPages, most));
  uint64_t next = 0;
  for (const ChosenBlock& block : blocks_) {
    const uint64_t end = (block.end() - 1) / PageSize() + 1;
    next = std::max(next, block.address / PageSize());
    for (; next < end && pages.size() < kMaxPages; ++next)
      pages.push_back(next);
  }
  return pages;
}

}  // namespace heapprofd
