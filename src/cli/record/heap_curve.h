// What a process had live over time, of looks that came when there was time for them: with
// many processes less often, and later when the machine is busy.
#pragma once

#include <cstdint>
#include <vector>

namespace heapprofd {

struct CurvePoint {
  uint64_t time_ns = 0;  // CLOCK_MONOTONIC
  double live_bytes = 0;
};

struct CurveSpan {
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;
};

// As many values as points, evenly spaced over the span: each the largest of its part of
// the time, or the one before where nobody looked. `points`: ordered by time; those outside
// of the span count at its ends.
std::vector<double> EvenlySpaced(const std::vector<CurvePoint>& points, CurveSpan span);

}  // namespace heapprofd
