// A table as columns: what SQL sees is read straight from the vectors that an imported
// trace is made of; no row is ever copied into the database.
//
// A column is a span of numbers or a function of the row number. It may promise an order,
// which lets the virtual table answer equality and ranges by binary search; columns
// without one get an index of row numbers when a query asks for equality repeatedly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/string_pool.h"

namespace heapprofd {

enum class CellKind : uint8_t { kNull, kInteger, kReal, kText };

// One value. The text belongs to whoever made the cell.
struct Cell {
  CellKind kind = CellKind::kNull;
  int64_t integer = 0;
  double real = 0;
  std::string_view text;

  static Cell Null() { return {}; }

  static Cell Integer(int64_t value) { return {CellKind::kInteger, value, 0, {}}; }

  static Cell Real(double value) { return {CellKind::kReal, 0, value, {}}; }

  static Cell Text(std::string_view value) { return {CellKind::kText, 0, 0, value}; }

  bool is_null() const { return kind == CellKind::kNull; }
};

enum class ColumnType : uint8_t { kInteger, kReal, kText };

enum class ColumnOrder : uint8_t {
  kNone,
  kAscending,  // no NULLs, never falls from row to row
};

// How a column's values are found.
struct RowNumbers {};

// Interned texts. UINT32_MAX is NULL.
struct InternedTexts {
  std::span<const StringId> ids;
  const StringPool* pool;
};

using ComputedCells = std::function<Cell(size_t row)>;

// Texts that are made when they are asked for, and belong to who has asked. SQLite
// compares them: rows are not found by them.
using MadeTexts = std::function<std::optional<std::string>(size_t row)>;

using ColumnSource = std::variant<RowNumbers,
                                  std::span<const int64_t>,
                                  std::span<const uint64_t>,  // shown as int64
                                  std::span<const uint32_t>,  // UINT32_MAX is NULL
                                  std::span<const double>,
                                  InternedTexts,
                                  ComputedCells,
                                  MadeTexts>;

struct TableColumn {
  std::string name;
  ColumnType type = ColumnType::kInteger;
  ColumnSource source;
  ColumnOrder order = ColumnOrder::kNone;
  bool is_hidden = false;  // not in SELECT *

  // 0, 1, 2, ...: every table's id.
  static TableColumn RowNumber(std::string name) {
    return {std::move(name), ColumnType::kInteger, RowNumbers{}, ColumnOrder::kAscending};
  }

  static TableColumn Integers(std::string name,
                              std::span<const int64_t> values,
                              ColumnOrder order = ColumnOrder::kNone) {
    return {std::move(name), ColumnType::kInteger, values, order};
  }

  static TableColumn Addresses(std::string name, std::span<const uint64_t> values) {
    return {std::move(name), ColumnType::kInteger, values, ColumnOrder::kNone};
  }

  static TableColumn Ids(std::string name,
                         std::span<const uint32_t> values,
                         ColumnOrder order = ColumnOrder::kNone) {
    return {std::move(name), ColumnType::kInteger, values, order};
  }

  static TableColumn Reals(std::string name, std::span<const double> values) {
    return {std::move(name), ColumnType::kReal, values, ColumnOrder::kNone};
  }

  static TableColumn Texts(std::string name, InternedTexts texts) {
    return {std::move(name), ColumnType::kText, texts, ColumnOrder::kNone};
  }

  // `cell` must return the column's type or NULL; texts must live as long as the table.
  static TableColumn Computed(std::string name, ColumnType type, ComputedCells cell) {
    return {std::move(name), type, std::move(cell), ColumnOrder::kNone};
  }

  static TableColumn Made(std::string name, MadeTexts text) {
    return {std::move(name), ColumnType::kText, std::move(text), ColumnOrder::kNone};
  }

  // Not of MadeTexts.
  Cell At(size_t row) const;
};

struct Table {
  std::vector<TableColumn> columns;
  size_t row_count = 0;
  // Keeps alive what the columns point to, when it is not part of the trace.
  std::shared_ptr<const void> storage;
};

}  // namespace heapprofd
