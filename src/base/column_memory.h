// Where the rows of columns (base/column.h) lie: in memory, and beyond a budget that a
// user has set in nameless files, whose pages the kernel may take back at any time. So
// what is larger than memory needs time instead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "base/status.h"

namespace heapprofd {

struct ColumnBudget {
  uint64_t bytes = 0;          // of all columns together
  std::string directory = {};  // for what is beyond
  // There is no room in it, as `why` says. Does not return: a column cannot fail.
  std::function<void(const std::string& why)> give_up = nullptr;
};

// Once, before there are threads or large columns. kInvalidArgument: files in this
// directory would be in memory themselves; kIo: there can be none.
Status SetColumnBudget(ColumnBudget budget);

// Bytes of large columns that are in memory, and in files: for tests.
uint64_t ColumnBytesInMemory();
uint64_t ColumnBytesInFiles();

// What a column holds on to.
struct ColumnMemory {
  void* data = nullptr;
  size_t bytes = 0;
  int file = -1;  // that it is mapped from; -1: none

  // The first rows stay. Running out of memory ends the program.
  void Resize(size_t new_bytes);

  void Free();
};

}  // namespace heapprofd
