#include "cli/record/heap_curve.h"

#include <algorithm>
#include <cstddef>

namespace heapprofd {

std::vector<double> EvenlySpaced(const std::vector<CurvePoint>& points, CurveSpan span) {
  const double length =
      static_cast<double>(std::max(span.begin_ns + 1, span.end_ns) - span.begin_ns);
  std::vector<double> values;
  values.reserve(points.size());
  size_t next = 0;
  for (size_t i = 1; i <= points.size(); ++i) {
    const uint64_t part_end_ns =
        span.begin_ns + static_cast<uint64_t>(length * static_cast<double>(i) /
                                              static_cast<double>(points.size()));
    const size_t first = next;
    while (next < points.size() &&
           (points[next].time_ns < part_end_ns || i == points.size()))
      ++next;
    if (next == first) {
      values.push_back(points[std::max<size_t>(next, 1) - 1].live_bytes);
      continue;
    }
    double largest = points[first].live_bytes;
    for (size_t at = first; at < next; ++at)
      largest = std::max(largest, points[at].live_bytes);
    values.push_back(largest);
  }
  return values;
}

}  // namespace heapprofd
