// A value for each of some callsites, in the order of their ids.
//
// They are made, and read, in this order again and again, some of them with a row for
// each of a million callsites: as a sorted array they take little memory and no time to
// free.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <utility>
#include <vector>

namespace heapprofd {

template <typename Value>
class CallsiteRows {
 public:
  using Row = std::pair<uint32_t, Value>;

  CallsiteRows() = default;

  CallsiteRows(std::initializer_list<Row> rows) {
    for (const Row& row : rows)
      emplace(row.first, row.second);
  }

  size_t size() const { return rows_.size(); }

  bool empty() const { return rows_.empty(); }

  auto begin() const { return rows_.begin(); }

  auto end() const { return rows_.end(); }

  void clear() { rows_.clear(); }

  void reserve(size_t size) { rows_.reserve(size); }

  // What they take of our memory.
  size_t bytes() const { return rows_.capacity() * sizeof(Row); }

  // Leaves a row that is there as it is. Cheap behind the last row only.
  void emplace(uint32_t id, const Value& value) { Place(id, value); }

  Value& operator[](uint32_t id) { return Place(id, Value())->second; }

  auto find(uint32_t id) const {
    const auto row = std::lower_bound(rows_.begin(), rows_.end(), id, IsBefore);
    return row != rows_.end() && row->first == id ? row : rows_.end();
  }

  const Value& at(uint32_t id) const {
    const auto row = find(id);
    if (row == end())
      throw std::out_of_range("no row of this callsite");
    return row->second;
  }

 private:
  static bool IsBefore(const Row& row, uint32_t id) { return row.first < id; }

  typename std::vector<Row>::iterator Place(uint32_t id, const Value& value) {
    if (rows_.empty() || rows_.back().first < id) {
      rows_.emplace_back(id, value);
      return rows_.end() - 1;
    }
    const auto row = std::lower_bound(rows_.begin(), rows_.end(), id, IsBefore);
    return row->first == id ? row : rows_.insert(row, {id, value});
  }

  std::vector<Row> rows_;
};

}  // namespace heapprofd
