#include "client/filter.h"

namespace heapprofd {

void SampledFilter::Insert(uint64_t address) {
  const uint64_t granule = GranuleOf(address);
  const uint64_t bucket = granule >> 5;
  const bool stored = HasExactTag(address) && StoreTag(bucket, TagOf(address, granule));
  std::atomic<uint64_t>& word = words_[bucket];
  uint64_t old = word.load(std::memory_order_relaxed);
  uint64_t next = 0;
  do {
    next = (old | uint64_t{1} << (granule & 31) | (stored ? 0 : kOverflow)) + kVersionOne;
  } while (!word.compare_exchange_weak(old, next, std::memory_order_acq_rel));
}

bool SampledFilter::Remove(uint64_t address) {
  const uint64_t granule = GranuleOf(address);
  const uint64_t bucket = granule >> 5;
  const auto bit = static_cast<uint32_t>(granule & 31);
  std::atomic<uint64_t>& word = words_[bucket];
  const bool found = HasExactTag(address) && ClearTag(bucket, TagOf(address, granule));
  uint64_t old = word.load(std::memory_order_acquire);
  if (!found)
    return (old & kOverflow) != 0 && (old >> bit & 1) != 0;
  while ((old & kOverflow) == 0 && !BitInUse(bucket, bit)) {
    if (word.compare_exchange_weak(old, (old & ~(uint64_t{1} << bit)) + kVersionOne,
                                   std::memory_order_acq_rel))
      break;
  }
  return true;
}

bool SampledFilter::StoreTag(uint64_t bucket, uint32_t tag) {
  for (auto& plane : slots_) {
    uint32_t old = plane[bucket].load(std::memory_order_relaxed);
    while (old == kNever || old == kVacant) {
      if (plane[bucket].compare_exchange_weak(old, tag, std::memory_order_release))
        return true;
    }
  }
  return false;
}

bool SampledFilter::ClearTag(uint64_t bucket, uint32_t tag) {
  for (auto& plane : slots_) {
    uint32_t old = plane[bucket].load(std::memory_order_acquire);
    if (old == kNever)
      return false;
    if (old == tag &&
        plane[bucket].compare_exchange_strong(old, kVacant, std::memory_order_acq_rel))
      return true;
  }
  return false;
}

bool SampledFilter::BitInUse(uint64_t bucket, uint32_t bit) const {
  for (const auto& plane : slots_) {
    const uint32_t tag = plane[bucket].load(std::memory_order_acquire);
    if (tag == kNever)
      return false;
    if (tag != kVacant && (tag >> 4 & 31) == bit)
      return true;
  }
  return false;
}

}  // namespace heapprofd
