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

// The first place in [low, end) that is not less (or not less-or-equal), by what `order`
// says of each.
template <typename Order>
size_t Bound(size_t low, size_t end, bool include_equal, const Order& order) {
  size_t count = end > low ? end - low : 0;
  while (count > 0) {
    const size_t half = count / 2;
    const std::strong_ordering at = order(low + half);
    if (at < 0 || (include_equal && at == 0)) {
      low += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return low;
}

}  // namespace

IndexedTable::Index IndexedTable::SortedByKey(const TableColumn& values,
                                              size_t row_count) {
  std::vector<std::pair<int64_t, uint32_t>> pairs;
  for (size_t row = 0; row < row_count; ++row) {
    if (const Cell cell = values.At(row); !cell.is_null())
      pairs.emplace_back(cell.integer, static_cast<uint32_t>(row));
  }
  std::sort(pairs.begin(), pairs.end());
  Index index;
  index.rows.reserve(pairs.size());
  index.keys.reserve(pairs.size());
  for (const auto& [key, row] : pairs) {
    index.rows.push_back(row);
    index.keys.push_back(key);
  }
  return index;
}

IndexedTable::Index IndexedTable::Sorted(const TableColumn& values, size_t row_count) {
  Index index;
  for (size_t row = 0; row < row_count; ++row) {
    if (!values.At(row).is_null())
      index.rows.push_back(static_cast<uint32_t>(row));
  }
  std::stable_sort(index.rows.begin(), index.rows.end(), [&](uint32_t a, uint32_t b) {
    return Compare(values.At(a), values.At(b)) < 0;
  });
  return index;
}

const IndexedTable::Index* IndexedTable::EqualityIndex(size_t column) {
  IndexedColumn& indexed = indexes_[column];
  if (indexed.lookups++ == 0 || table_->row_count > UINT32_MAX)
    return nullptr;
  if (!indexed.index) {
    const TableColumn& values = table_->columns[column];
    const bool computes_integers = std::holds_alternative<ComputedCells>(values.source) &&
                                   values.type == ColumnType::kInteger;
    indexed.index = computes_integers ? SortedByKey(values, table_->row_count)
                                      : Sorted(values, table_->row_count);
  }
  return &*indexed.index;
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
  const auto bound = [&](bool include_equal) {
    return Bound(position_, end_, include_equal,
                 [&](size_t at) { return Compare(column.At(at), constraint.value); });
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
      if (!StartAtNamesake(column, constraint.value))
        position_ = bound(false);
      end_ = bound(true);
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

// Sets of rows are often named by the first one of them.
bool RowFilter::StartAtNamesake(const TableColumn& column, const Cell& value) {
  if (value.kind != CellKind::kInteger)
    return false;
  const auto row = static_cast<size_t>(value.integer);
  const auto order = [&](size_t at) { return Compare(column.At(at), value); };
  if (row < position_ || row >= end_ || order(row) != 0 ||
      (row > position_ && order(row - 1) == 0))
    return false;
  position_ = row;
  size_t step = 1;
  while (step < end_ - row && order(row + step) == 0)
    step *= 2;
  end_ = row + std::min(step, end_ - row);
  return true;
}

bool RowFilter::UseIndex(const RowConstraint& constraint) {
  const IndexedTable::Index* index = table_.EqualityIndex(constraint.column);
  if (index == nullptr)
    return false;
  const TableColumn& column = table_.table().columns[constraint.column];
  const auto order = [&](size_t at) {
    return Compare(
        index->keys.empty() ? column.At(index->rows[at]) : Cell::Integer(index->keys[at]),
        constraint.value);
  };
  position_ = Bound(0, index->rows.size(), /*include_equal=*/false, order);
  end_ = Bound(position_, index->rows.size(), /*include_equal=*/true, order);
  list_ = index->rows.data();
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
