// Writes the shared table of rules (walk/rule_table.h): one engine thread.
//
// The table may lie in memory that a hostile target has mapped. How many buckets are in
// use is therefore known here, and only stored there; entries that are read back are
// words that are compared, never places.
#pragma once

#include <atomic>
#include <cstdint>

#include "walk/rule.h"
#include "walk/rule_table.h"

namespace heapprofd {

class RuleWriter {
 public:
  // `table` is zeroed and outlives this object. No other object writes to it.
  explicit RuleWriter(RuleTable* table) : table_(*table) {}

  // When there are as many buckets as can be, a full one loses the entry that the new key
  // falls on: the client then asks again.
  void Insert(uint64_t key, Rule rule) {
    if (key == 0 || key >= kMaxKey || rule.kind == RuleKind::kUnknown)
      return;
    const uint64_t word = RuleTable::TagOf(key) | EncodeRule(rule);
    while (!Put(BucketOf(key), word)) {
      if (bucket_bits_ == kMaxRuleBucketBits) {
        BucketOf(key).entries[(key >> 4) % kRulesPerBucket].store(
            word, std::memory_order_release);
        return;
      }
      Grow();
    }
  }

  // Readers see entries vanish one by one, which is safe: they then ask.
  void Clear() {
    for (Bucket& bucket : table_.buckets_) {
      for (std::atomic<uint64_t>& entry : bucket.entries)
        entry.store(0, std::memory_order_relaxed);
    }
  }

 private:
  using Bucket = RuleTable::Bucket;
  static constexpr uint64_t kRuleMask = RuleTable::kRuleMask;
  static constexpr unsigned kTagShift = RuleTable::kTagShift;

  Bucket& BucketOf(uint64_t key) {
    return table_.buckets_[RuleTable::IndexOf(key, bucket_bits_)];
  }

  // Key of an entry, from its tag and the index of a bucket that it may be in.
  static uint64_t KeyOf(uint64_t word, uint64_t index) {
    const uint64_t high = word >> kRuleBits << kTagShift;
    return high | ((index ^ RuleTable::Fold(high)) & ((uint64_t{1} << kTagShift) - 1));
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
    const uint64_t count = uint64_t{1} << bucket_bits_;
    for (uint64_t index = 0; index < count; ++index) {
      for (const std::atomic<uint64_t>& entry : table_.buckets_[index].entries) {
        const uint64_t word = entry.load(std::memory_order_relaxed);
        if (word != 0 && IsMoved(word, index, count))
          Put(table_.buckets_[index + count], word);
      }
    }
    ++bucket_bits_;
    table_.doublings_.store(bucket_bits_ - kMinRuleBucketBits, std::memory_order_release);
    for (uint64_t index = 0; index < count; ++index)
      RemoveMoved(table_.buckets_[index], index, count);
  }

  static bool IsMoved(uint64_t word, uint64_t index, uint64_t index_bit) {
    return (RuleTable::Fold(KeyOf(word, index)) & index_bit) != 0;
  }

  static void RemoveMoved(Bucket& bucket, uint64_t index, uint64_t index_bit) {
    unsigned kept = 0;
    for (const std::atomic<uint64_t>& entry : bucket.entries) {
      const uint64_t word = entry.load(std::memory_order_relaxed);
      if (word != 0 && !IsMoved(word, index, index_bit))
        bucket.entries[kept++].store(word, std::memory_order_release);
    }
    for (; kept < kRulesPerBucket; ++kept)
      bucket.entries[kept].store(0, std::memory_order_release);
  }

  RuleTable& table_;
  unsigned bucket_bits_ = kMinRuleBucketBits;
};

}  // namespace heapprofd
