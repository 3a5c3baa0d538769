// CREATE PERFETTO TABLE, VIEW, FUNCTION, MACRO and INDEX, taken apart.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace heapprofd {

struct PerfettoCreate {
  enum class Kind : uint8_t {
    kView,      // a table, too: what it is of does not change
    kFunction,  // with one value
    kMacro,
    kNothing,  // an index: we have those that we need
  };

  Kind kind = Kind::kNothing;
  bool replaces = false;
  std::string name = {};
  std::vector<std::string> parameters = {};
  std::string body = {};  // a query; of a macro any text
};

// nullopt: the statement is another one.
Result<std::optional<PerfettoCreate>> ParseCreate(std::string_view statement);

}  // namespace heapprofd
