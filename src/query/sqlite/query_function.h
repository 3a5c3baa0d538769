// A scalar function that is a query.
#pragma once

#include <string>
#include <vector>

namespace heapprofd {

// Its value is the first one of the query's first row; NULL when there is none.
struct QueryFunction {
  std::string name;
  std::vector<std::string> parameters;  // in `select` with $ in front
  std::string select;
};

}  // namespace heapprofd
