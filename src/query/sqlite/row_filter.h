// Finds the rows of a table that satisfy comparisons: by row number, by binary search in
// ordered columns, by an index built on demand, and by looking at each remaining row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "query/sqlite/table.h"

namespace heapprofd {

enum class Comparison : uint8_t { kEqual, kLess, kLessEqual, kGreater, kGreaterEqual };

// column <comparison> value; `value` is never NULL and its kind is comparable with the
// column's (numbers with numbers, text with text).
struct RowConstraint {
  size_t column = 0;
  Comparison comparison = Comparison::kEqual;
  Cell value;
};

// A table with the indexes that queries on it have caused. One thread at a time.
class IndexedTable {
 public:
  explicit IndexedTable(std::shared_ptr<const Table> table)
      : table_(std::move(table)), indexes_(table_->columns.size()) {}

  const Table& table() const { return *table_; }

  struct Index {
    std::vector<uint32_t> rows;  // in ascending order of value, NULLs left out; rows of
                                 // one value ascend
    std::vector<int64_t> keys;   // their values, where a column computes integers: that
                                 // may mean to hash all of an array; else empty
  };

  // The first call for a column returns nullptr: one lookup is not worth sorting for.
  const Index* EqualityIndex(size_t column);

 private:
  struct IndexedColumn {
    uint32_t lookups = 0;
    std::optional<Index> index;
  };

  static Index SortedByKey(const TableColumn& values, size_t row_count);
  static Index Sorted(const TableColumn& values, size_t row_count);

  std::shared_ptr<const Table> table_;
  std::vector<IndexedColumn> indexes_;
};

// Iterates over the rows that satisfy all constraints, in ascending order.
class RowFilter {
 public:
  explicit RowFilter(IndexedTable& table) : table_(table) {}

  // Starts over. `constraints` is copied, the texts in it are not.
  void Start(std::span<const RowConstraint> constraints);

  // Starts over with the row of this number only. False: there is none.
  bool StartAt(int64_t row) {
    remaining_.clear();
    list_ = nullptr;
    position_ = static_cast<size_t>(row);
    end_ = position_ + 1;
    return position_ < table_.table().row_count;
  }

  bool at_end() const { return position_ >= end_; }

  size_t row() const { return list_ != nullptr ? list_[position_] : position_; }

  void Next() {
    ++position_;
    SkipMismatches();
  }

 private:
  void NarrowOrdered(const RowConstraint& constraint);
  // Goes to the rows of `value`, with a few others behind them perhaps. False: they do not
  // begin at the row of this number.
  bool StartAtNamesake(const TableColumn& column, const Cell& value);
  bool UseIndex(const RowConstraint& constraint);
  void SkipMismatches();

  IndexedTable& table_;
  std::vector<RowConstraint> remaining_;
  const uint32_t* list_ = nullptr;  // rows to visit; null: all from position_ to end_
  size_t position_ = 0;
  size_t end_ = 0;
};

}  // namespace heapprofd
