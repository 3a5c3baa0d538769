// Which of a heap's live blocks are looked at, and the pages they lie on.
//
// All of them while there are few. Of many a choice that stands for all: a block is
// chosen with a probability that grows with the bytes that it stands for, and then stands
// for as many more. It depends on its address and a secret, so that the next choice has
// nearly the same blocks.
//
// Addresses and sizes are the target's word: no matter what they are, choosing takes a
// time that grows with the number of live samples, and all else is bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "profile/live_heap.h"
#include "profile/model.h"

namespace heapprofd {

struct ChosenBlock {
  uint64_t address = 0;
  uint64_t size = 0;     // bytes, at least 1
  double bytes = 0;      // that it stands for
  uint64_t born_ns = 0;  // CLOCK_MONOTONIC
  CallsiteId callsite = 0;

  uint64_t end() const { return address + size; }
};

class ChosenBlocks {
 public:
  static constexpr size_t kMax = 65'536;  // of more, a quarter to a half stands for all
  static constexpr size_t kMaxPages = 1 << 20;  // that they lie on

  ChosenBlocks() = default;
  ChosenBlocks(const LiveHeap& heap, uint64_t secret);

  // Goes on choosing until `end_ns` (CLOCK_MONOTONIC) or longer by moments; false: there
  // is more to do.
  bool Choose(const LiveHeap& heap, uint64_t now_ns, uint64_t end_ns);

  // Sorted by address; none overlaps another.
  std::span<const ChosenBlock> blocks() const { return blocks_; }

  // Estimate of what is in blocks that are left out, though they were to be looked at.
  double left_out_bytes() const { return left_out_bytes_; }

  // By number (address / page size), ascending: the first kMaxPages.
  std::vector<uint64_t> Pages() const;

 private:
  void Consider(const SampledAllocation& sample, uint64_t born_ns);
  void Arrange();

  uint64_t secret_ = 0;
  double threshold_ = 0;  // bytes: who stands for fewer is chosen by lot
  size_t at_ = 0;         // of the heap's samples
  std::vector<ChosenBlock> blocks_;
  double left_out_bytes_ = 0;
};

}  // namespace heapprofd
