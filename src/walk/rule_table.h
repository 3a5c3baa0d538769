// The shared table key -> rule: written by one engine thread (walk/rule_writer.h), read by
// every thread of the target.
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

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "walk/rule.h"

namespace heapprofd {

inline constexpr unsigned kMinRuleBucketBits = 10;
inline constexpr unsigned kMaxRuleBucketBits = 13;
inline constexpr uint32_t kMaxRuleDoublings = kMaxRuleBucketBits - kMinRuleBucketBits;
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

 private:
  friend class RuleWriter;

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

  // Bounded, whatever stands in the shared memory.
  unsigned bucket_bits() const {
    return kMinRuleBucketBits +
           std::min(doublings_.load(std::memory_order_relaxed), kMaxRuleDoublings);
  }

  static uint64_t IndexOf(uint64_t key, unsigned bucket_bits) {
    return Fold(key) & ((uint64_t{1} << bucket_bits) - 1);
  }

  uint64_t IndexOf(uint64_t key) const { return IndexOf(key, bucket_bits()); }

  alignas(64) std::atomic<uint32_t> doublings_;  // of the buckets in use
  Bucket buckets_[kRuleBuckets];
};

static_assert(kRuleBuckets <= 1u << 16);  // PlaceOf
static_assert(sizeof(RuleTable) == size_t{512} * 1024 + 64);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

}  // namespace heapprofd
