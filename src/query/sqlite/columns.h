// Columns over the rows of an imported trace, made from small functions: `number` returns
// something integral or an optional of it, `text` a StringId.
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "query/sqlite/table.h"
#include "tables/imported_trace.h"

namespace heapprofd {

template <typename T>
Cell NumberCell(T value) {
  return Cell::Integer(static_cast<int64_t>(value));
}

template <typename T>
Cell NumberCell(const std::optional<T>& value) {
  return value ? Cell::Integer(static_cast<int64_t>(*value)) : Cell::Null();
}

// kNoId is NULL.
inline Cell TextCell(const ImportedTrace& trace, StringId id) {
  return id == kNoId ? Cell::Null() : Cell::Text(trace.Text(id));
}

inline Cell IdCell(uint32_t id) {
  return id == kNoId ? Cell::Null() : Cell::Integer(id);
}

template <typename F>
TableColumn NumberColumn(std::string_view name, F number) {
  return TableColumn::Computed(std::string(name), ColumnType::kInteger,
                               [number](size_t row) { return NumberCell(number(row)); });
}

template <typename F>
TableColumn IdColumn(std::string_view name, F id) {
  return TableColumn::Computed(std::string(name), ColumnType::kInteger,
                               [id](size_t row) { return IdCell(id(row)); });
}

template <typename F>
TableColumn RealColumn(std::string_view name, F number) {
  return TableColumn::Computed(std::string(name), ColumnType::kReal,
                               [number](size_t row) { return Cell::Real(number(row)); });
}

template <typename F>
TableColumn TextColumn(std::string_view name, const ImportedTrace& trace, F text) {
  return TableColumn::Computed(
      std::string(name), ColumnType::kText,
      [&trace, text](size_t row) { return TextCell(trace, text(row)); });
}

inline TableColumn TextColumn(std::string_view name,
                              const ImportedTrace& trace,
                              std::span<const StringId> ids) {
  return TableColumn::Texts(std::string(name), {ids, &trace.strings});
}

// Fixed texts: `text` returns a pointer to a literal, or null for NULL.
template <typename F>
TableColumn LiteralColumn(std::string_view name, F text) {
  return TableColumn::Computed(std::string(name), ColumnType::kText, [text](size_t row) {
    const char* const literal = text(row);
    return literal == nullptr ? Cell::Null() : Cell::Text(literal);
  });
}

// Columns that exist for compatibility and are NULL in every row.
inline TableColumn NullColumn(std::string_view name,
                              ColumnType type = ColumnType::kInteger) {
  return TableColumn::Computed(std::string(name), type,
                               [](size_t) { return Cell::Null(); });
}

}  // namespace heapprofd
