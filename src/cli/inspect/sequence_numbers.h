// Numbers for sequences of numbers, 0, 1, 2, ... as they come: equal ones have the same.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/random_seed.h"
#include "base/row_index.h"

namespace heapprofd {

class SequenceNumbers {
 public:
  uint32_t Of(std::span<const uint32_t> sequence) {
    index_.Prepare([this](uint32_t number) { return HashOf(At(number)); });
    uint32_t& number = index_.Find(HashOf(sequence), [&](uint32_t known) {
      return std::ranges::equal(At(known), sequence);
    });
    if (number == RowIndex::kNone) {
      number = static_cast<uint32_t>(ends_.size());
      values_.insert(values_.end(), sequence.begin(), sequence.end());
      ends_.push_back(values_.size());
      index_.CountAdded();
    }
    return number;
  }

  // Of what `number_of` says of each.
  template <typename Items, typename NumberOf>
  uint32_t OfEach(const Items& items, NumberOf number_of) {
    std::vector<uint32_t> sequence;
    sequence.reserve(items.size());
    for (const auto& item : items)
      sequence.push_back(number_of(item));
    return Of(sequence);
  }

  // Valid until the next call of Of.
  std::span<const uint32_t> At(uint32_t number) const {
    const size_t begin = number == 0 ? 0 : ends_[number - 1];
    return std::span(values_).subspan(begin, ends_[number] - begin);
  }

 private:
  // From a secret: what is in a file is its writer's choice.
  uint64_t HashOf(std::span<const uint32_t> sequence) const {
    uint64_t hash = secret_;
    for (const uint32_t value : sequence)
      hash = Mix(hash ^ value);
    return hash;
  }

  RowIndex index_;
  std::vector<uint32_t> values_;  // of all sequences
  std::vector<size_t> ends_;      // of each in values_
  uint64_t secret_ = RandomSeed();
};

}  // namespace heapprofd
