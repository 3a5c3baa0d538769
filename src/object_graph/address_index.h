// From the ids of objects to numbers from 0 and back. Ids that are addresses lie close
// together: a bit for each place where an object might begin, and how many there are
// before. Ids that are scattered are sorted.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/column.h"
#include "object_graph/object_graph.h"

namespace heapprofd {

class AddressIndex {
 public:
  struct Range {
    uint64_t begin;
    uint64_t bytes;
    uint64_t first_word;
  };

  // In one place, so that finding an object needs one line of the processor's cache.
  struct Word {
    uint32_t bits[2];
    uint32_t before;  // objects in words before this
  };

  // All that there is to it, in memory that is somebody else's.
  struct Parts {
    uint32_t size = 0;
    uint32_t shift = 0;
    std::span<const Range> ranges;
    std::span<const Word> words;
    std::span<const uint64_t> sorted;
  };

  // The same id may be there several times. Objects are numbered by their ids.
  explicit AddressIndex(const Column<uint64_t>& ids);

  // Whatever the parts say, which must outlive this, each answer is in range.
  explicit AddressIndex(const Parts& parts);

  Parts parts() const { return {size_, shift_, ranges_, words_, sorted_}; }

  // At most; UINT32_MAX: there are more than numbers.
  uint32_t size() const { return size_; }

  // kNoObject: there is none.
  uint32_t Find(uint64_t id) const {
    if (!sorted_.empty())
      return FindSorted(id);
    for (const Range& range : ranges_) {
      const uint64_t offset = id - range.begin;
      if (offset < range.bytes)
        return FindIn(range, offset);
    }
    return kNoObject;
  }

  uint64_t IdOf(uint32_t object) const;

 private:
  uint32_t FindIn(const Range& range, uint64_t offset) const {
    if ((offset & ((uint64_t{1} << shift_) - 1)) != 0)
      return kNoObject;
    const uint64_t place = offset >> shift_;
    const Word& word = words_[range.first_word + place / 64];
    const uint64_t bits = uint64_t{word.bits[1]} << 32 | word.bits[0];
    const uint64_t bit = uint64_t{1} << (place % 64);
    if ((bits & bit) == 0)
      return kNoObject;
    const uint32_t object =
        word.before + static_cast<uint32_t>(__builtin_popcountll(bits & (bit - 1)));
    return object < size_ ? object : kNoObject;
  }

  uint32_t FindSorted(uint64_t id) const;
  void MakeRanges(const Column<uint64_t>& ids);
  void SetBits(const Column<uint64_t>& ids);
  void Sort(const Column<uint64_t>& ids);

  uint32_t size_ = 0;
  uint32_t shift_ = 0;  // ids are multiples of this power of two
  std::vector<Range> ranges_;
  std::span<const Word> words_;
  std::span<const uint64_t> sorted_;  // instead of the others
  Column<Word> own_words_;            // that these are in, or somebody else has them
  Column<uint64_t> own_sorted_;
};

}  // namespace heapprofd
