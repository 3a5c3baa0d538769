// The sampled-address filter: which live allocations were sampled, so that free() of any
// other address costs one load and one test and tells nobody.
//
// Three levels, all fixed memory, all lock-free:
//   pages  8 KiB that stay in the first-level cache: one bit per (folded) page, and a
//          count beside it that only sampled events touch. At large intervals this
//          answers nearly every free.
//   bits   one 64-bit word per bucket: 32 filter bits (low half) and a version (high
//          half). A set bit says "a sampled address may live here"; a clear bit is
//          certain. Neighbouring addresses share words, so a program that frees what it
//          used together stays in one cache line.
//   slots  the exact addresses of a bucket, as 32-bit tags. Bucket, bit and tag together
//          give the address back, so a match is exact. Planes are touched only as far as
//          the fullest bucket needs; most are memory that is given when they are.
//
// Clearing a bit must not lose a concurrent insertion: an inserter stores its tag first
// and then raises the version; a remover recomputes the bit from the tags and swaps the
// word only if the version still stands. A bucket whose slots are full keeps its bits set
// for ever: frees there are then always reported, which costs time but is never wrong.
//
// Where every allocation is sampled there is nothing to be told apart: an open filter
// reports all frees, save those of null, and keeps no address.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "rt/compiler.h"

namespace heapprofd {

class SampledFilter {
 public:
  // False: `address` is certainly not a live sampled allocation.
  bool MayContain(uint64_t address) const {
    const uint64_t page = PageOf(address);
    const uint64_t page_word = page_words_[page >> 5].load(std::memory_order_relaxed);
    if (HPD_LIKELY((page_word >> (page & 31) & 1) == 0))
      return false;
    if (IsOpen())
      return address != 0;
    const uint64_t granule = GranuleOf(address);
    const uint64_t word = words_[granule >> 5].load(std::memory_order_relaxed);
    return (word >> (granule & 31) & 1) != 0;
  }

  // False: there was no room for the exact address, and would be with GiveMemory. It is
  // in.
  bool Insert(uint64_t address);

  // Bytes of memory that GiveMemory takes.
  static constexpr size_t kMoreBytes = size_t{60} << 16;

  // Memory for more planes, kMoreBytes, zeroed and as long-lived as the filter.
  void GiveMemory(std::byte* memory) {
    more_.store(reinterpret_cast<Plane*>(memory), std::memory_order_release);
  }

  // May contain every address but 0 from now on. Threads may do so at the same time.
  void Open();

  // Contains only what is inserted while it is not open. In one order with Open and with
  // what either thread does next, so that two that race agree which was last.
  void Close() {
    if (is_open_.load() != 0)  // or untouched memory stays so
      is_open_.store(0);
  }

  bool IsOpen() const { return is_open_.load(std::memory_order_acquire) != 0; }

  // Asks for the memory that Insert will need.
  void PrefetchForInsert(uint64_t address) const {
    const uint64_t bucket = GranuleOf(address) >> 5;
    __builtin_prefetch(&words_[bucket], 1);
    __builtin_prefetch(&slots_[0][bucket], 1);
    __builtin_prefetch(&page_counts_[PageOf(address)], 1);
  }

  // True when the address was sampled and its free must be reported. Removes it.
  bool Remove(uint64_t address);

 private:
  static constexpr unsigned kGranuleShift = 5;
  static constexpr unsigned kGranuleBits = 19;
  static constexpr unsigned kBuckets = 1u << (kGranuleBits - 5);
  static constexpr unsigned kPlanes = 64;
  static constexpr unsigned kOwnPlanes = 4;
  static constexpr uint64_t kVersionOne = uint64_t{1} << 33;
  static constexpr uint64_t kOverflow = uint64_t{1}
                                        << 32;  // a tag was not stored: bits are sticky
  static constexpr uint32_t kNever = 0;         // slot was never used: the search ends
  static constexpr uint32_t kVacant = 1;        // slot was used and is free again

  using Plane = std::atomic<uint32_t>[kBuckets];

  static constexpr unsigned kPageBits = 15;

  static uint64_t PageOf(uint64_t address) {
    const uint64_t page = address >> 12;
    return (page ^ page >> kPageBits) & ((1u << kPageBits) - 1);
  }

  // 32-byte granules, so that the bits of a large heap still share the second-level cache
  // with the program; the higher address bits are folded in so that heaps of any size
  // spread.
  static uint64_t GranuleOf(uint64_t address) {
    const uint64_t granule = address >> kGranuleShift;
    return (granule ^ granule >> kGranuleBits) & ((1u << kGranuleBits) - 1);
  }

  // {address bits 24..46 | bit within the word | address bits 3..4 | 1 | 1}: never kNever
  // or kVacant.
  static uint32_t TagOf(uint64_t address, uint64_t granule) {
    const uint32_t high =
        static_cast<uint32_t>(address >> (kGranuleShift + kGranuleBits)) & 0x7fffff;
    const uint32_t bit = static_cast<uint32_t>(granule & 31);
    return high << 9 | bit << 4 | static_cast<uint32_t>(address >> 3 & 3) << 2 | 3;
  }

  static bool HasExactTag(uint64_t address) {
    return address < uint64_t{1} << 47 && address % 8 == 0;
  }

  void InsertPage(uint64_t address);
  void RemovePage(uint64_t address);
  bool StoreTag(uint64_t bucket, uint32_t tag);
  bool ClearTag(uint64_t bucket, uint32_t tag);
  bool BitInUse(uint64_t bucket, uint32_t bit);

  // nullptr: there is no memory for the plane, nor for those behind it.
  std::atomic<uint32_t>* SlotOf(unsigned plane, uint64_t bucket) {
    if (HPD_LIKELY(plane < kOwnPlanes))
      return &slots_[plane][bucket];
    Plane* more = more_.load(std::memory_order_acquire);
    return more != nullptr ? &more[plane - kOwnPlanes][bucket] : nullptr;
  }

  std::atomic<uint64_t> is_open_;
  std::atomic<uint64_t> page_words_[(1u << kPageBits) / 32];  // {version | 32 bits}
  std::atomic<uint32_t> page_counts_[1u << kPageBits];
  std::atomic<uint64_t> words_[kBuckets];
  static_assert(kMoreBytes == (kPlanes - kOwnPlanes) * sizeof(Plane));

  std::atomic<Plane*> more_;  // planes behind its own
  Plane slots_[kOwnPlanes];
};

}  // namespace heapprofd
