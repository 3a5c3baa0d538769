#include "query/histogram.h"

#include <algorithm>
#include <utility>

#include "profile/block_shapes.h"
#include "query/sum.h"

namespace heapprofd {
namespace {

bool IsShortest(ShapeKind kind, uint8_t log2) {
  return log2 == 0 && (kind == ShapeKind::kLifetime || kind == ShapeKind::kAge);
}

// Rows come in ascending order; of equal ones the first stays in front.
void KeepLargest(SizedRow next, std::array<SizedRow, 3>& largest) {
  size_t place = 0;
  while (place < largest.size() && largest[place].row != kNoId &&
         largest[place].size >= next.size)
    ++place;
  for (; place < largest.size(); ++place)
    std::swap(largest[place], next);
}

}  // namespace

std::string_view NameOf(ShapeKind kind) {
  switch (kind) {
    case ShapeKind::kAllocatedSize:
      return "allocated_size";
    case ShapeKind::kLifetime:
      return "lifetime";
    case ShapeKind::kTemporary:
      return "temporary";
    case ShapeKind::kLiveSize:
      return "live_size";
    case ShapeKind::kAge:
      return "age";
  }
  return "";
}

uint64_t LowOf(ShapeKind kind, uint8_t log2) {
  return kind == ShapeKind::kTemporary || IsShortest(kind, log2) ? 0
                                                                 : uint64_t{1} << log2;
}

uint64_t HighOf(ShapeKind kind, uint8_t log2) {
  if (kind == ShapeKind::kTemporary)
    return kTemporaryNs;
  return IsShortest(kind, log2) ? kShortestTimeNs - 1 : (uint64_t{2} << log2) - 1;
}

ShapeSum SumOfThreads(const ShapeTable& rows, uint32_t row) {
  ShapeSum sum;
  const auto is_like_row = [&](uint32_t at) {
    return rows.callsite[at] == rows.callsite[row] && rows.kind[at] == rows.kind[row] &&
           rows.log2[at] == rows.log2[row] && rows.dump[at] == rows.dump[row];
  };
  uint32_t at = row;
  do {
    sum.count = Sum(sum.count, rows.count[at]);
    sum.size = Sum(sum.size, rows.size[at]);
    sum.variance += rows.count_error[at] * rows.count_error[at];
  } while (++at < rows.row_count() && is_like_row(at));
  sum.end = at;
  return sum;
}

std::map<HistogramBin, HistogramSum> SumHistogram(const ShapeTable& rows) {
  std::map<HistogramBin, HistogramSum> sums;
  for (uint32_t row = 0; row < rows.row_count();) {
    const ShapeSum of_row = SumOfThreads(rows, row);
    const auto kind = static_cast<ShapeKind>(rows.kind[row]);
    HistogramSum& sum =
        sums[{.dump = rows.dump[row], .kind = kind, .low = LowOf(kind, rows.log2[row])}];
    sum.high = HighOf(kind, rows.log2[row]);
    sum.count = Sum(sum.count, of_row.count);
    sum.size = Sum(sum.size, of_row.size);
    sum.variance += of_row.variance;
    if (rows.callsite[row] != kNoId)
      KeepLargest({row, of_row.size}, sum.largest);
    row = of_row.end;
  }
  return sums;
}

std::vector<uint32_t> LargestTemporary(const ShapeTable& rows, size_t limit) {
  std::vector<uint32_t> found;
  for (uint32_t row = 0; row < rows.row_count(); ++row) {
    if (static_cast<ShapeKind>(rows.kind[row]) == ShapeKind::kTemporary &&
        rows.callsite[row] != kNoId)
      found.push_back(row);
  }
  limit = std::min(limit, found.size());
  std::partial_sort(
      found.begin(), found.begin() + static_cast<ptrdiff_t>(limit), found.end(),
      [&rows](uint32_t a, uint32_t b) {
        return rows.count[a] != rows.count[b] ? rows.count[a] > rows.count[b] : a < b;
      });
  found.resize(limit);
  return found;
}

}  // namespace heapprofd
