// Blocks by powers of two: what heap_profile_histogram calls the rows of ShapeTable, and
// its sums over all callsites.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "profile/model.h"
#include "tables/imported_trace.h"

namespace heapprofd {

// Blocks of one dump whose sizes or times begin with the same power of two.
struct HistogramBin {
  uint32_t dump;
  ShapeKind kind;
  uint64_t low;  // see LowOf

  auto operator<=>(const HistogramBin&) const = default;
};

// In SQL; empty: a kind that a newer recorder may know.
std::string_view NameOf(ShapeKind kind);

// The least and the largest size or time in the bin: bytes or ns.
uint64_t LowOf(ShapeKind kind, uint8_t log2);
uint64_t HighOf(ShapeKind kind, uint8_t log2);

// A row of ShapeTable, and the bytes of SumOfThreads.
struct SizedRow {
  uint32_t row = kNoId;
  int64_t size = 0;

  bool operator==(const SizedRow&) const = default;
};

// One bin with the blocks of all callsites.
struct HistogramSum {
  uint64_t high = 0;  // see HighOf
  int64_t count = 0;
  int64_t size = 0;     // bytes
  double variance = 0;  // of the count
  // Those with the most bytes, the largest first; kNoId: there are fewer.
  std::array<SizedRow, 3> largest = {};
};

// A row of ShapeTable with the ones behind it that differ from it in the thread alone.
struct ShapeSum {
  int64_t count = 0;
  int64_t size = 0;     // bytes
  double variance = 0;  // of the count
  uint32_t end = 0;     // one behind the last of them
};

ShapeSum SumOfThreads(const ShapeTable& rows, uint32_t row);

// SELECT ... GROUP BY dump_id, kind, low, which SQLite would sort all rows for: of a
// compiler's recording that takes longer than all the rest of a report.
std::map<HistogramBin, HistogramSum> SumHistogram(const ShapeTable& rows);

// The rows of kind kTemporary with the most blocks, at most `limit`, the largest first.
std::vector<uint32_t> LargestTemporary(const ShapeTable& rows, size_t limit);

}  // namespace heapprofd
