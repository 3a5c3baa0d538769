#include "tables/clock_table.h"

#include <algorithm>

namespace heapprofd {
namespace {

std::optional<int64_t> ReadingOf(const ClockTable::Snapshot& snapshot, uint32_t clock) {
  for (const auto& [id, ns] : snapshot) {
    if (id == clock)
      return ns;
  }
  return std::nullopt;
}

// Readings come from a file: the sum wraps instead of overflowing.
int64_t Shift(int64_t ts, int64_t from, int64_t to) {
  return static_cast<int64_t>(static_cast<uint64_t>(ts) - static_cast<uint64_t>(from) +
                              static_cast<uint64_t>(to));
}

}  // namespace

void ClockTable::Add(Snapshot snapshot) {
  constexpr size_t kMaxSnapshots = 1 << 16;  // one per 10 s of a week
  if (!snapshot.empty() && snapshots_.size() < kMaxSnapshots)
    snapshots_.push_back(std::move(snapshot));
}

std::optional<int64_t> ClockTable::Convert(uint32_t from, uint32_t to, int64_t ts) const {
  if (from == to)
    return ts;
  std::optional<int64_t> converted;
  for (const Snapshot& snapshot : snapshots_) {
    const std::optional<int64_t> source = ReadingOf(snapshot, from);
    const std::optional<int64_t> target = ReadingOf(snapshot, to);
    if (!source || !target)
      continue;
    if (converted && *source > ts)
      break;
    converted = Shift(ts, *source, *target);
  }
  return converted;
}

}  // namespace heapprofd
