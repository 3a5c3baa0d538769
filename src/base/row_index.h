// Finds rows of a table by what they contain, for tables that grow: an open-addressing
// set of the row numbers 0, 1, 2, ...; the rows themselves hold the keys.
//
// A byte of each row's hash stands apart from the row numbers. Looking for a key touches
// little more than these bytes, which stay in the processor's caches when the rows, of
// which there may be millions, do not.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/column.h"

namespace heapprofd {

// For hashes: any change of the number changes about half of the result.
inline uint64_t Mix(uint64_t value) {
  value ^= value >> 32;
  value *= 0x9e3779b97f4a7c15;
  value ^= value >> 29;
  value *= 0xbf58476d1ce4e5b9;
  return value ^ (value >> 32);
}

class RowIndex {
 public:
  // Stands where no row is.
  static constexpr uint32_t kNone = UINT32_MAX;

  // The place of the row for which `is_equal(row)`, or one that holds kNone: put the next
  // row there, or leave it. The reference ends with the next call. Hashes must be good in
  // all of their bits.
  template <typename IsEqual>
  uint32_t& Find(uint64_t hash, IsEqual is_equal) {
    const size_t mask = rows_.size() - 1;
    const uint8_t tag = TagOf(hash);
    size_t at = hash & mask;
    for (; tags_[at] != kFree; at = (at + 1) & mask) {
      if (tags_[at] == tag && (rows_[at] == kNone || is_equal(rows_[at])))
        return rows_[at];
    }
    tags_[at] = tag;
    return rows_[at];
  }

  // Lets the processor fetch what LikelyRow and Find will read first.
  void Prefetch(uint64_t hash) const {
    if (rows_.empty())
      return;
    const size_t at = hash & (rows_.size() - 1);
    __builtin_prefetch(&tags_[at]);
    __builtin_prefetch(&rows_[at]);
  }

  // A row that most likely has this hash, or kNone.
  uint32_t LikelyRow(uint64_t hash) const {
    if (rows_.empty())
      return kNone;
    const size_t mask = rows_.size() - 1;
    const uint8_t tag = TagOf(hash);
    for (size_t at = hash & mask; tags_[at] != kFree; at = (at + 1) & mask) {
      if (tags_[at] == tag)
        return rows_[at];
    }
    return kNone;
  }

  // To be called before Find when a row may be added; `hash_of(row)` of all present rows.
  template <typename HashOf>
  void Prepare(HashOf hash_of) {
    if (size_ * 3 < rows_.size() * 2)
      return;
    const size_t size = rows_.size() < kFirstSize ? kFirstSize : rows_.size() * 2;
    tags_ = Column<uint8_t>();
    rows_ = Column<uint32_t>();
    tags_.ReserveForRandomAccess(size);
    rows_.ReserveForRandomAccess(size);
    tags_.resize(size, kFree);
    rows_.resize(size, kNone);
    for (uint32_t row = 0; row < size_; ++row) {
      if (row + kAhead < size_)
        Prefetch(hash_of(row + kAhead));
      Find(hash_of(row), [](uint32_t) { return false; }) = row;
    }
  }

  // The next row was put to its place.
  void CountAdded() { ++size_; }

 private:
  static constexpr size_t kFirstSize = 64;
  static constexpr uint8_t kFree = 0;
  static constexpr uint32_t kAhead = 16;  // rows, while memory is on its way

  static uint8_t TagOf(uint64_t hash) {
    const auto tag = static_cast<uint8_t>(hash >> 56);
    return tag == kFree ? 1 : tag;
  }

  Column<uint8_t> tags_;
  Column<uint32_t> rows_;
  size_t size_ = 0;
};

}  // namespace heapprofd
