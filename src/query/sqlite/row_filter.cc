#include "query/sqlite/row_filter.h"

#include <algorithm>
#include <compare>
#include <numeric>

namespace heapprofd {
namespace {

std::strong_ordering Sign(bool is_less, bool is_greater) {
  if (is_less)
    return std::strong_ordering::less;
  return is_greater ? std::strong_ordering::greater : std::strong_ordering::equal;
}

// Exact also where a double cannot hold the integer. NaN never gets here: SQLite has
// none.
std::strong_ordering CompareMixed(int64_t a, double b) {
  constexpr double kTwoTo63 = 9223372036854775808.0;
  if (b >= kTwoTo63)
    return std::strong_ordering::less;
  if (b < -kTwoTo63)
    return std::strong_ordering::greater;
  const auto whole = static_cast<int64_t>(b);
  if (a != whole)
    return a <=> whole;
  const double fraction = b - static_cast<double>(whole);
  return Sign(fraction > 0, fraction < 0);
}

std::strong_ordering Compare(const Cell& a, const Cell& b) {
  if (a.kind == CellKind::kText)
    return a.text <=> b.text;
  if (a.kind == CellKind::kInteger)
    return b.kind == CellKind::kInteger ? a.integer <=> b.integer
                                        : CompareMixed(a.integer, b.real);
  if (b.kind == CellKind::kInteger)
    return 0 <=> CompareMixed(b.integer, a.real);
  return Sign(a.real<b.real, a.real> b.real);
}

bool Satisfies(const Cell& cell, const RowConstraint& constraint) {
  if (cell.is_null())
    return false;
  const std::strong_ordering order = Compare(cell, constraint.value);
  switch (constraint.comparison) {
    case Comparison::kEqual:
      return order == 0;
    case Comparison::kLess:
      return order < 0;
    case Comparison::kLessEqual:
      return order <= 0;
    case Comparison::kGreater:
      return order > 0;
    case Comparison::kGreaterEqual:
      return order >= 0;
  }
  return false;
}

}  // namespace

const std::vector<uint32_t>* IndexedTable::EqualityIndex(size_t column) {
  Index& index = indexes_[column];
  if (index.lookups++ == 0 || table_->row_count > UINT32_MAX)
    return nullptr;
  if (!index.rows) {
    const TableColumn& values = table_->columns[column];
    std::vector<uint32_t> rows;
    for (size_t row = 0; row < table_->row_count; ++row) {
      if (!values.At(row).is_null())
        rows.push_back(static_cast<uint32_t>(row));
    }
    std::stable_sort(rows.begin(), rows.end(), [&](uint32_t a, uint32_t b) {
      return Compare(values.At(a), values.At(b)) < 0;
    });
    index.rows = std::move(rows);
  }
  return &*index.rows;
}

void RowFilter::Start(std::span<const RowConstraint> constraints) {
  list_ = nullptr;
  position_ = 0;
  end_ = table_.table().row_count;
  remaining_.clear();
  for (const RowConstraint& constraint : constraints) {
    if (table_.table().columns[constraint.column].order == ColumnOrder::kAscending)
      NarrowOrdered(constraint);
    else
      remaining_.push_back(constraint);
  }
  constexpr size_t kFewRows = 64;  // looking at them costs less than finding them
  for (size_t i = 0; i < remaining_.size() && end_ - position_ > kFewRows; ++i) {
    if (remaining_[i].comparison == Comparison::kEqual && position_ == 0 &&
        end_ == table_.table().row_count && UseIndex(remaining_[i])) {
      remaining_.erase(remaining_.begin() + static_cast<std::ptrdiff_t>(i));
      break;
    }
  }
  SkipMismatches();
}

void RowFilter::NarrowOrdered(const RowConstraint& constraint) {
  const TableColumn& column = table_.table().columns[constraint.column];
  // First row in [position_, end_) that is not less (or not less-or-equal).
  const auto bound = [&](bool include_equal) {
    size_t low = position_;
    size_t count = end_ > low ? end_ - low : 0;
    while (count > 0) {
      const size_t half = count / 2;
      const std::strong_ordering order = Compare(column.At(low + half), constraint.value);
      if (order < 0 || (include_equal && order == 0)) {
        low += half + 1;
        count -= half + 1;
      } else {
        count = half;
      }
    }
    return low;
  };
  if (std::holds_alternative<RowNumbers>(column.source) &&
      constraint.comparison == Comparison::kEqual &&
      constraint.value.kind == CellKind::kInteger) {
    const auto row = static_cast<size_t>(constraint.value.integer);
    if (row < position_ || row >= end_) {
      end_ = position_;
    } else {
      position_ = row;
      end_ = row + 1;
    }
    return;
  }
  switch (constraint.comparison) {
    case Comparison::kEqual: {
      const size_t first = bound(false);
      end_ = bound(true);
      position_ = first;
      break;
    }
    case Comparison::kLess:
      end_ = bound(false);
      break;
    case Comparison::kLessEqual:
      end_ = bound(true);
      break;
    case Comparison::kGreater:
      position_ = bound(true);
      break;
    case Comparison::kGreaterEqual:
      position_ = bound(false);
      break;
  }
}

bool RowFilter::UseIndex(const RowConstraint& constraint) {
  const std::vector<uint32_t>* index = table_.EqualityIndex(constraint.column);
  if (index == nullptr)
    return false;
  const TableColumn& column = table_.table().columns[constraint.column];
  const auto first = std::partition_point(
      index->begin(), index->end(),
      [&](uint32_t row) { return Compare(column.At(row), constraint.value) < 0; });
  const auto last = std::partition_point(first, index->end(), [&](uint32_t row) {
    return Compare(column.At(row), constraint.value) == 0;
  });
  list_ = index->data();
  position_ = static_cast<size_t>(first - index->begin());
  end_ = static_cast<size_t>(last - index->begin());
  return true;
}

void RowFilter::SkipMismatches() {
  if (remaining_.empty())
    return;
  const std::vector<TableColumn>& columns = table_.table().columns;
  const auto matches = [&](size_t at) {
    return std::all_of(remaining_.begin(), remaining_.end(), [&](const auto& constraint) {
      return Satisfies(columns[constraint.column].At(at), constraint);
    });
  };
  while (!at_end() && !matches(row()))
    ++position_;
}

}  // namespace heapprofd
