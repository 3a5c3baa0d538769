// What the objects of each class have together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/hprof/opened/opened_dump.h"

namespace heapprofd {

struct ClassRow {
  std::string name;
  uint64_t objects = 0;
  uint64_t bytes = 0;
  uint64_t retained = 0;  // 0 unless asked for
};

struct ClassSums {
  std::vector<ClassRow> rows;  // largest first; each name once
  uint64_t objects = 0;
  uint64_t bytes = 0;
  uint64_t reachable_bytes = 0;  // 0 unless retained sizes are asked for
};

Result<ClassSums> SumClasses(OpenedDump* opened, bool with_retained);

// Of what nothing holds: what the next collection of garbage would free, or, of what has a
// finalizer that was not called, put into the queue of finalizers.
Result<ClassSums> SumUnreachable(OpenedDump* opened);

nlohmann::json JsonOf(const ClassRow& row, bool with_retained);

// Without the rows.
nlohmann::json JsonOf(const ClassSums& sums, bool with_retained);

}  // namespace heapprofd
