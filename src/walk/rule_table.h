// The shared table key -> rule: written by one engine thread, read by every thread of the
// target.
//
// One 64-bit word per entry, {tag: 34 bits | rule: 30 bits}, so a reader sees an entry
// wholly or not at all, without a lock. A bucket is one cache line of 8 entries; the
// bucket index is folded from the key so that index and tag together give the key back: a
// hit is exact.
#pragma once

#include <atomic>
#include <cstdint>

#include "walk/rule.h"

namespace heapprofd {

inline constexpr unsigned kRuleBucketBits = 13;
inline constexpr unsigned kRuleBuckets = 1u << kRuleBucketBits;
inline constexpr unsigned kRulesPerBucket = 8;
inline constexpr uint64_t kMaxKey = uint64_t{1} << 47;  // user space addresses

class RuleTable {
 public:
  // Any thread. kUnknown when the table does not hold the key.
  Rule Find(uint64_t key) const {
    if (key >= kMaxKey)
      return Rule{};  // its tag would lose the high bits
    const uint64_t tag = key >> kRuleBucketBits << kRuleBits;
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

  // Engine thread only. A full bucket loses the entry that the new key falls on: the
  // client then asks again.
  void Insert(uint64_t key, Rule rule) {
    if (key == 0 || key >= kMaxKey || rule.kind == RuleKind::kUnknown)
      return;
    const uint64_t tag = key >> kRuleBucketBits << kRuleBits;
    const uint64_t word = tag | EncodeRule(rule);
    Bucket& bucket = buckets_[IndexOf(key)];
    for (std::atomic<uint64_t>& entry : bucket.entries) {
      const uint64_t old = entry.load(std::memory_order_relaxed);
      if (old == 0 || (old & ~kRuleMask) == tag) {
        entry.store(word, std::memory_order_release);
        return;
      }
    }
    bucket.entries[(key >> 4) % kRulesPerBucket].store(word, std::memory_order_release);
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
  static constexpr unsigned kRuleBits = 30;
  static constexpr uint64_t kRuleMask = (uint64_t{1} << kRuleBits) - 1;

  struct alignas(64) Bucket {
    std::atomic<uint64_t> entries[kRulesPerBucket];
  };

  static uint64_t IndexOf(uint64_t key) {
    return (key ^ key >> kRuleBucketBits ^ key >> (2 * kRuleBucketBits)) % kRuleBuckets;
  }

  Bucket buckets_[kRuleBuckets];
};

static_assert(sizeof(RuleTable) == size_t{512} * 1024);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

}  // namespace heapprofd
