// Insert: page, then tag, then the bucket's bit. Remove: tag, then the bit if no tag of
// the bucket needs it (BitInUse), then the page. In this order, and with a version in each
// word, an address that is in is never reported as out, whatever happens between.
#include "client/filter.h"

namespace heapprofd {

void SampledFilter::InsertPage(uint64_t address) {
  const uint64_t page = PageOf(address);
  page_counts_[page].fetch_add(1, std::memory_order_acq_rel);
  std::atomic<uint64_t>& word = page_words_[page >> 5];
  uint64_t old = word.load(std::memory_order_relaxed);
  while (!word.compare_exchange_weak(
      old, (old | uint64_t{1} << (page & 31)) + kVersionOne, std::memory_order_acq_rel)) {
  }
}

void SampledFilter::RemovePage(uint64_t address) {
  const uint64_t page = PageOf(address);
  std::atomic<uint64_t>& word = page_words_[page >> 5];
  page_counts_[page].fetch_sub(1, std::memory_order_acq_rel);
  uint64_t old = word.load(std::memory_order_acquire);
  while (page_counts_[page].load(std::memory_order_acquire) == 0 &&
         !word.compare_exchange_weak(old,
                                     (old & ~(uint64_t{1} << (page & 31))) + kVersionOne,
                                     std::memory_order_acq_rel)) {
  }
}

void SampledFilter::Open() {
  if (IsOpen())
    return;
  for (std::atomic<uint64_t>& word : page_words_)
    word.store(UINT32_MAX, std::memory_order_relaxed);
  is_open_.store(1);
}

bool SampledFilter::Insert(uint64_t address) {
  if (IsOpen())
    return true;
  InsertPage(address);
  const uint64_t granule = GranuleOf(address);
  const uint64_t bucket = granule >> 5;
  const bool stored = HasExactTag(address) && StoreTag(bucket, TagOf(address, granule));
  std::atomic<uint64_t>& word = words_[bucket];
  uint64_t old = word.load(std::memory_order_relaxed);
  uint64_t next = 0;
  do {
    next = (old | uint64_t{1} << (granule & 31) | (stored ? 0 : kOverflow)) + kVersionOne;
  } while (!word.compare_exchange_weak(old, next, std::memory_order_acq_rel));
  return stored || !HasExactTag(address) ||
         more_.load(std::memory_order_relaxed) != nullptr;
}

bool SampledFilter::Remove(uint64_t address) {
  if (IsOpen())
    return address != 0;
  const uint64_t granule = GranuleOf(address);
  const uint64_t bucket = granule >> 5;
  const auto bit = static_cast<uint32_t>(granule & 31);
  std::atomic<uint64_t>& word = words_[bucket];
  const bool found = HasExactTag(address) && ClearTag(bucket, TagOf(address, granule));
  uint64_t old = word.load(std::memory_order_acquire);
  if (!found)  // its page bit, too, stays for ever
    return (old & kOverflow) != 0 && (old >> bit & 1) != 0;
  while ((old & kOverflow) == 0 && !BitInUse(bucket, bit)) {
    if (word.compare_exchange_weak(old, (old & ~(uint64_t{1} << bit)) + kVersionOne,
                                   std::memory_order_acq_rel))
      break;
  }
  RemovePage(address);
  return true;
}

bool SampledFilter::StoreTag(uint64_t bucket, uint32_t tag) {
  for (unsigned plane = 0; plane < kPlanes; ++plane) {
    std::atomic<uint32_t>* slot = SlotOf(plane, bucket);
    if (slot == nullptr)
      return false;
    uint32_t old = slot->load(std::memory_order_relaxed);
    while (old == kNever || old == kVacant) {
      if (slot->compare_exchange_weak(old, tag, std::memory_order_release))
        return true;
    }
  }
  return false;
}

bool SampledFilter::ClearTag(uint64_t bucket, uint32_t tag) {
  for (unsigned plane = 0; plane < kPlanes; ++plane) {
    std::atomic<uint32_t>* slot = SlotOf(plane, bucket);
    uint32_t old = slot != nullptr ? slot->load(std::memory_order_acquire) : kNever;
    if (old == kNever)
      return false;
    if (old == tag &&
        slot->compare_exchange_strong(old, kVacant, std::memory_order_acq_rel))
      return true;
  }
  return false;
}

bool SampledFilter::BitInUse(uint64_t bucket, uint32_t bit) {
  for (unsigned plane = 0; plane < kPlanes; ++plane) {
    const std::atomic<uint32_t>* slot = SlotOf(plane, bucket);
    const uint32_t tag = slot != nullptr ? slot->load(std::memory_order_acquire) : kNever;
    if (tag == kNever)
      return false;
    if (tag != kVacant && (tag >> 4 & 31) == bit)
      return true;
  }
  return false;
}

}  // namespace heapprofd
