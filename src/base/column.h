// A growing array of plain values in one piece of memory: one column of a table with
// millions of rows.
//
// Unlike std::vector it grows without holding the old and the new array at once: large
// blocks are moved by the kernel (mremap), and what is reserved but not yet used costs no
// memory. Beyond a budget it is in a file (base/column_memory.h). Running out of memory
// ends the program, as everywhere.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

#include "base/column_memory.h"
#include "base/status.h"

namespace heapprofd {

template <typename T>
class Column {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Column() = default;

  Column(Column&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, 0)),
        memory_(std::exchange(other.memory_, {})) {}

  Column& operator=(Column&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    std::swap(memory_, other.memory_);
    return *this;
  }

  Column(const Column&) = delete;
  Column& operator=(const Column&) = delete;

  ~Column() { memory_.Free(); }

  size_t size() const { return size_; }

  bool empty() const { return size_ == 0; }

  T& operator[](size_t row) { return data_[row]; }

  const T& operator[](size_t row) const { return data_[row]; }

  T& back() { return data_[size_ - 1]; }

  T* begin() { return data_; }

  T* end() { return data_ + size_; }

  const T* begin() const { return data_; }

  const T* end() const { return data_ + size_; }

  std::span<T> span() { return {data_, size_}; }

  std::span<const T> span() const { return {data_, size_}; }

  // Spans and references end here.
  void push_back(T value) {
    if (size_ == capacity_)
      Reserve(capacity_ < kFirstCapacity ? kFirstCapacity : capacity_ + capacity_ / 2);
    data_[size_++] = value;
  }

  void pop_back() { --size_; }

  // `values` are no part of this column. Spans and references end here.
  void append(std::span<const T> values) {
    const size_t size = size_ + values.size();
    if (size > capacity_)
      Reserve(std::max(size, capacity_ + capacity_ / 2));
    std::copy(values.begin(), values.end(), data_ + size_);
    size_ = size;
  }

  // New rows get `value`.
  void resize(size_t size, T value) {
    if (size > capacity_)
      Reserve(std::max(size, capacity_ + capacity_ / 2));
    for (size_t row = size_; row < size; ++row)
      data_[row] = value;
    size_ = size;
  }

  // For rows that are read here and there: large pages save the processor most of its
  // searches for them. Up to that many rows; to be called before they are added.
  void ReserveForRandomAccess(size_t capacity) {
    constexpr uintptr_t kLargePage = uintptr_t{2} << 20;
    if (capacity <= capacity_)
      return;
    Reserve(capacity);
    const auto begin = reinterpret_cast<uintptr_t>(data_);
    const uintptr_t first = (begin + kLargePage - 1) / kLargePage * kLargePage;
    const uintptr_t last = (begin + capacity * sizeof(T)) / kLargePage * kLargePage;
    if (first < last)  // a wish: what fails costs only time
      madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
  }

  void clear() { size_ = 0; }

 private:
  static constexpr size_t kFirstCapacity = 16;

  void Reserve(size_t capacity) {
    HPD_CHECK(capacity <= SIZE_MAX / sizeof(T));
    memory_.Resize(capacity * sizeof(T));
    data_ = static_cast<T*>(memory_.data);
    capacity_ = capacity;
  }

  T* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
  ColumnMemory memory_;
};

}  // namespace heapprofd
