// A growing array of numbers that nearly always fit into 16 bits, such as depths of
// stacks: two bytes each until a larger one comes, four from then on.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/column.h"

namespace heapprofd {

class SmallNumbers {
 public:
  size_t size() const { return narrow_.size() + wide_.size(); }

  uint32_t operator[](size_t row) const { return is_wide_ ? wide_[row] : narrow_[row]; }

  void push_back(uint32_t value) {
    Fit(value);
    if (is_wide_)
      wide_.push_back(value);
    else
      narrow_.push_back(static_cast<uint16_t>(value));
  }

  // Of a row that is there.
  void Set(size_t row, uint32_t value) {
    Fit(value);
    if (is_wide_)
      wide_[row] = value;
    else
      narrow_[row] = static_cast<uint16_t>(value);
  }

 private:
  void Fit(uint32_t value) {
    if (value <= UINT16_MAX || is_wide_)
      return;
    for (const uint16_t row : narrow_)
      wide_.push_back(row);
    narrow_ = {};
    is_wide_ = true;
  }

  // One of them is empty.
  Column<uint16_t> narrow_;
  Column<uint32_t> wide_;
  bool is_wide_ = false;
};

}  // namespace heapprofd
