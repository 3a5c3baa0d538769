// Values that SQLite hands to functions and tables of ours.
#pragma once

#include <sqlite3.h>

#include <string_view>

#include "query/sqlite/table.h"

namespace heapprofd {

// The bytes of a text or blob; they live as long as `value`.
inline std::string_view TextOf(sqlite3_value* value) {
  const void* bytes = sqlite3_value_blob(value);
  const auto size = static_cast<size_t>(sqlite3_value_bytes(value));
  return bytes == nullptr ? std::string_view()
                          : std::string_view(static_cast<const char*>(bytes), size);
}

inline Cell CellOf(sqlite3_value* value) {
  switch (sqlite3_value_type(value)) {
    case SQLITE_INTEGER:
      return Cell::Integer(sqlite3_value_int64(value));
    case SQLITE_FLOAT:
      return Cell::Real(sqlite3_value_double(value));
    case SQLITE_NULL:
      return Cell::Null();
    default:
      return Cell::Text(TextOf(value));
  }
}

}  // namespace heapprofd
