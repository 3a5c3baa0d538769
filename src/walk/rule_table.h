// The shared table key -> rule: written by one engine thread, read by every thread of the
// target.
//
// One 64-bit word per entry, {tag: 38 bits | rule: 26 bits}, so a reader sees an entry
// wholly or not at all, without a lock. A bucket is one cache line of 8 entries; the
// bucket index is folded from the key so that index and tag together give the key back: a
// hit is exact.
//
// A walk looks up some ten keys, and most of its time is cache misses: so the table is
// dense. It begins with few buckets and doubles them when one overflows. A reader that
// still goes by the old number misses entries, but never takes one for another, since
// tags hold all bits of the key that only more buckets would make unnecessary.
#pragma once

#include <atomic>
#include <cstdint>

#include "walk/rule.h"

namespace heapprofd {

inline constexpr unsigned kMinRuleBucketBits = 10;
inline constexpr unsigned kMaxRuleBucketBits = 13;
inline constexpr unsigned kRuleBuckets = 1u << kMaxRuleBucketBits;
inline constexpr unsigned kRulesPerBucket = 8;
inline constexpr uint64_t kMaxKey = uint64_t{1} << kAddressBits;

class RuleTable {
 public:
  // Any thread. kUnknown when the table does not hold the key.
  Rule Find(uint64_t key) const {
    if (key >= kMaxKey)
      return Rule{};  // its tag would lose the high bits
    const uint64_t tag = TagOf(key);
    const Bucket& bucket = buckets_[IndexOf(key)];
    for (const std::atomic<uint64_t>& entry : bucket.entries) {
      const uint64_t word = entry.load(std::memory_order_relaxed);
      if ((word & ~kRuleMask) == tag && word != 0)
        return DecodeRule(static_cast<uint32_t>(word & kRuleMask));
      if (word == 0)
        break;  // entries are filled in order
    }
    return Rule{};
  }

  // Where Find would look for the key, for Prefetch.
  uint16_t PlaceOf(uint64_t key) const { return static_cast<uint16_t>(IndexOf(key)); }

  void Prefetch(uint16_t place) const {
    __builtin_prefetch(&buckets_[place % kRuleBuckets]);
  }

  // Engine thread only. When there are as many buckets as can be, a full one loses the
  // entry that the new key falls on: the client then asks again.
  void Insert(uint64_t key, Rule rule) {
    if (key == 0 || key >= kMaxKey || rule.kind == RuleKind::kUnknown)
      return;
    const uint64_t word = TagOf(key) | EncodeRule(rule);
    while (!Put(buckets_[IndexOf(key)], word)) {
      if (bucket_bits() == kMaxRuleBucketBits) {
        buckets_[IndexOf(key)].entries[(key >> 4) % kRulesPerBucket].store(
            word, std::memory_order_release);
        return;
      }
      Grow();
    }
  }

  // Engine thread only. Readers see entries vanish one by one, which is safe: they then
  // ask.
  void Clear() {
    for (Bucket& bucket : buckets_) {
      for (std::atomic<uint64_t>& entry : bucket.entries)
        entry.store(0, std::memory_order_relaxed);
    }
  }

 private:
  static constexpr uint64_t kRuleMask = (uint64_t{1} << kRuleBits) - 1;
  // Lower key bits than this follow from the tag and the bucket's index, whatever the
  // number of buckets.
  static constexpr unsigned kTagShift = kAddressBits - (64 - kRuleBits);
  static_assert(kTagShift <= kMinRuleBucketBits);

  struct alignas(64) Bucket {
    std::atomic<uint64_t> entries[kRulesPerBucket];
  };

  static uint64_t TagOf(uint64_t key) { return key >> kTagShift << kRuleBits; }

  static uint64_t Fold(uint64_t key) {
    return key ^ key >> kMaxRuleBucketBits ^ key >> (2 * kMaxRuleBucketBits);
  }

  unsigned bucket_bits() const {
    return kMinRuleBucketBits + doublings_.load(std::memory_order_relaxed);
  }

  uint64_t IndexOf(uint64_t key) const {
    return Fold(key) & ((uint64_t{1} << bucket_bits()) - 1);
  }

  // Key of an entry, from its tag and the index of a bucket that it may be in.
  static uint64_t KeyOf(uint64_t word, uint64_t index) {
    const uint64_t high = word >> kRuleBits << kTagShift;
    return high | ((index ^ Fold(high)) & ((uint64_t{1} << kTagShift) - 1));
  }

  // False: the bucket is full.
  static bool Put(Bucket& bucket, uint64_t word) {
    for (std::atomic<uint64_t>& entry : bucket.entries) {
      const uint64_t old = entry.load(std::memory_order_relaxed);
      if (old == 0 || ((old ^ word) & ~kRuleMask) == 0) {
        entry.store(word, std::memory_order_release);
        return true;
      }
    }
    return false;
  }

  // Every bucket gives the entries whose next index bit is set to a new bucket. First
  // there, then here, so that a reader rarely misses one.
  void Grow() {
    const uint64_t count = uint64_t{1} << bucket_bits();
    for (uint64_t index = 0; index < count; ++index) {
      for (const std::atomic<uint64_t>& entry : buckets_[index].entries) {
        const uint64_t word = entry.load(std::memory_order_relaxed);
        if (word != 0 && (Fold(KeyOf(word, index)) & count) != 0)
          Put(buckets_[index + count], word);
      }
    }
    doublings_.fetch_add(1, std::memory_order_release);
    for (uint64_t index = 0; index < count; ++index)
      RemoveMoved(buckets_[index], index, count);
  }

  static void RemoveMoved(Bucket& bucket, uint64_t index, uint64_t index_bit) {
    unsigned kept = 0;
    for (const std::atomic<uint64_t>& entry : bucket.entries) {
      const uint64_t word = entry.load(std::memory_order_relaxed);
      if (word != 0 && (Fold(KeyOf(word, index)) & index_bit) == 0)
        bucket.entries[kept++].store(word, std::memory_order_release);
    }
    for (; kept < kRulesPerBucket; ++kept)
      bucket.entries[kept].store(0, std::memory_order_release);
  }

  alignas(64) std::atomic<uint32_t> doublings_;  // of the buckets in use
  Bucket buckets_[kRuleBuckets];
};

static_assert(kRuleBuckets <= 1u << 16);  // PlaceOf
static_assert(sizeof(RuleTable) == size_t{512} * 1024 + 64);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

}  // namespace heapprofd
