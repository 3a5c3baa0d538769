// What a heap keeps of each sampled allocation while it is live. There are millions, so
// it is as small as the limits of what it holds allow.
#pragma once

#include <cstdint>

#include "profile/block_shapes.h"
#include "profile/model.h"
#include "profile/peak_estimator.h"

namespace heapprofd {

struct SampledAllocation {
  uint64_t address = 0;
  uint64_t size = 0;      // bytes
  uint64_t interval = 1;  // bytes, at most 2^40
  CallsiteId callsite = 0;
  ThreadId thread = kUnknownThread;
};

// Of a block; 0: nobody knows by whom or when.
struct Freeing {
  ThreadId thread = kUnknownThread;
  uint64_t now_ns = 0;
};

class LiveSample {
 public:
  LiveSample() = default;

  // `row`: of the heap's callsites (profile/callsite_sums.h).
  LiveSample(const SampledAllocation& allocation,
             uint32_t row,
             PeakEstimator::Halves halves,
             uint64_t now_ns);

  uint64_t size() const { return size_; }

  uint64_t interval() const { return interval_; }

  PeakEstimator::Halves halves() const {
    return static_cast<PeakEstimator::Halves>(halves_);
  }

  uint32_t row() const { return static_cast<uint32_t>(row_); }

  ThreadId thread() const { return static_cast<ThreadId>(thread_); }

  // Rounded, and at least 1.
  uint64_t AgeNs(uint64_t now_ns) const;

  BlockShapes::End EndBy(const Freeing& freeing) const;

 private:
  static constexpr int kTimeShift = 8;  // units of 256 ns, which last for a year
  static constexpr int kSizeBits = 57;
  static constexpr int kHighBits = 7;
  static constexpr int kIntervalBits = 41;
  static constexpr int kThreadBits = 15;
  static constexpr int kRowBits = 24;
  static constexpr int kLowBits = 40;

  static constexpr uint64_t Mask(int bits) { return (uint64_t{1} << bits) - 1; }

  uint64_t size_ : kSizeBits = 0;
  uint64_t born_high_ : kHighBits = 0;
  uint64_t interval_ : kIntervalBits = 0;
  uint64_t halves_ : 8 = 0;
  uint64_t thread_ : kThreadBits = 0;
  uint64_t row_ : kRowBits = 0;
  uint64_t born_low_ : kLowBits = 0;
};

// For each event of a program.
inline LiveSample::LiveSample(const SampledAllocation& allocation,
                              uint32_t row,
                              PeakEstimator::Halves halves,
                              uint64_t now_ns)
    : size_(allocation.size & Mask(kSizeBits)),
      born_high_(now_ns >> kTimeShift >> kLowBits & Mask(kHighBits)),
      interval_(allocation.interval & Mask(kIntervalBits)),
      halves_(halves),
      thread_(allocation.thread & Mask(kThreadBits)),
      row_(row & Mask(kRowBits)),
      born_low_(now_ns >> kTimeShift & Mask(kLowBits)) {}

inline uint64_t LiveSample::AgeNs(uint64_t now_ns) const {
  constexpr uint64_t kMask = Mask(kLowBits + kHighBits);
  const uint64_t born = uint64_t{born_high_} << kLowBits | born_low_;
  const uint64_t age = ((now_ns >> kTimeShift) - born) & kMask;
  const bool is_ahead = age > kMask / 2;  // clocks of several processors differ a little
  return age == 0 || is_ahead ? 1 : age << kTimeShift;
}

inline BlockShapes::End LiveSample::EndBy(const Freeing& freeing) const {
  if (freeing.now_ns == 0)
    return {};
  const uint64_t age = AgeNs(freeing.now_ns);
  const bool is_its_thread =
      freeing.thread != kUnknownThread && freeing.thread == thread();
  return {.lived_ns = age, .is_temporary = is_its_thread && age <= kTemporaryNs};
}

}  // namespace heapprofd
