// Sums of figures that a hostile trace chose: they stop at the ends of the range.
#pragma once

#include <cstdint>

namespace heapprofd {

inline int64_t Sum(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum))
    return sum;
  return a < 0 ? INT64_MIN : INT64_MAX;
}

}  // namespace heapprofd
