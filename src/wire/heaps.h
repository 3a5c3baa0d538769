// Heaps beside malloc's, and labels: the tables through which client and engine agree
// what an id means.
//
// The engine says which heaps are recorded and how (HeapRules, in its own block). The
// client gives every heap and every label an id and publishes its text in its block
// before the first record that uses the id; an entry never changes afterwards. The engine
// treats the texts as hostile.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "wire/records.h"

namespace heapprofd {

inline constexpr size_t kMaxHeaps = 256;     // 0 is malloc's
inline constexpr size_t kHeapNameSize = 64;  // with the terminating zero
inline constexpr size_t kMaxHeapRules = 64;
inline constexpr uint8_t kMallocHeapId = 0;

// One heap that the session names. Interval in bytes, 0: not recorded.
struct HeapRule {
  uint64_t interval;
  char name[kHeapNameSize];
};

// Which heaps are recorded. Written before the client sees it, constant afterwards but
// for the shift.
struct HeapRules {
  uint64_t other_interval;  // of heaps that no rule names, 0: not recorded
  uint64_t max_interval;    // one that is not smaller is not doubled any more
  uint32_t count;
  std::atomic<uint32_t> interval_shift;  // intervals are this many times doubled
  HeapRule rules[kMaxHeapRules];
};

inline bool HeapNamesEqual(const char* left, const char* right) {
  for (size_t i = 0; i < kHeapNameSize; ++i) {
    if (left[i] != right[i])
      return false;
    if (left[i] == 0)
      return true;
  }
  return true;
}

inline constexpr uint32_t kMaxIntervalShift = 40;  // doublings of an interval

// Sampling interval of a heap as the session began, bytes; 0: it is not recorded. The
// first rule with its name decides.
inline uint64_t HeapIntervalByName(const HeapRules& rules, const char* name) {
  for (uint32_t i = 0; i < rules.count && i < kMaxHeapRules; ++i) {
    if (HeapNamesEqual(rules.rules[i].name, name))
      return rules.rules[i].interval;
  }
  return rules.other_interval;
}

// Of one whose interval was this as the session began. A target can have written to the
// rules of its own session before they were sealed: whatever stands there costs no more.
inline uint64_t IntervalInForce(const HeapRules& rules, uint64_t interval) {
  uint32_t shift =
      std::min(rules.interval_shift.load(std::memory_order_relaxed), kMaxIntervalShift);
  for (; shift > 0 && interval != 0 && interval < rules.max_interval; --shift)
    interval = std::min(interval * 2, kMaxInterval);
  return interval;
}

struct HeapEntry {
  std::atomic<uint32_t> is_set;
  char name[kHeapNameSize];
};

inline constexpr size_t kMaxLabels = 4096;
inline constexpr size_t kLabelKeySize = 32;  // with the terminating zero
inline constexpr size_t kLabelValueSize = 92;

struct LabelEntry {
  std::atomic<uint32_t> is_set;
  char key[kLabelKeySize];
  char value[kLabelValueSize];
};

static_assert(sizeof(LabelEntry) == 128);

// A sample's labels: up to four ids of 16 bits in one word, the innermost in the lowest
// bits; 0 is none.
inline constexpr unsigned kLabelBits = 16;
inline constexpr unsigned kMaxLabelDepth = 4;
inline constexpr uint32_t kTooManyLabels = 0xffff;  // no entry was left

}  // namespace heapprofd
