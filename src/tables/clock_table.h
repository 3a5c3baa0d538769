// Conversion between the clocks of a trace, by its ClockSnapshots.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace heapprofd {

// Perfetto's numbers.
enum ClockId : uint32_t {
  kClockRealtime = 1,
  kClockRealtimeCoarse = 2,
  kClockMonotonic = 3,
  kClockMonotonicCoarse = 4,
  kClockMonotonicRaw = 5,
  kClockBoottime = 6,
};

class ClockTable {
 public:
  // Simultaneous readings, in ns, by clock id.
  using Snapshot = std::vector<std::pair<uint32_t, int64_t>>;

  void Add(Snapshot snapshot);

  bool empty() const { return snapshots_.empty(); }

  // `ts` of clock `from` as clock `to`, both in ns: by the last snapshot with both that
  // is not later than `ts`, else by the first one. None: no snapshot has both.
  std::optional<int64_t> Convert(uint32_t from, uint32_t to, int64_t ts) const;

 private:
  std::vector<Snapshot> snapshots_;
};

}  // namespace heapprofd
