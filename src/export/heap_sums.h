// From the rows of a heap's dumps to what each callsite holds at one of them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "tables/trace_builder.h"

namespace heapprofd {

// What a callsite has allocated and holds, in the order of the sample types.
using HeapValues = std::array<int64_t, 4>;

// Figures may be anything: sums wrap instead of overflowing.
inline int64_t WrappingSum(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

// Sums of one heap of one process, as of the last row added.
class HeapSums {
 public:
  void Add(const ImportedTrace& trace, const ImportedDump& dump) {
    const AllocationTable& rows = trace.allocations;
    for (uint32_t i = 0; i < dump.allocation_count; ++i) {
      const uint32_t row = dump.first_allocation + i;
      HeapValues& values = Of(rows.callsite[row]);
      const int64_t count = rows.count[row];
      const int64_t size = rows.size[row];
      // Frees are rows of their own; rows of a peak may fall in either figure.
      if (count >= 0 && size >= 0 && i < dump.first_live_row) {
        values[0] = WrappingSum(values[0], count);
        values[1] = WrappingSum(values[1], size);
      }
      values[2] = WrappingSum(values[2], count);
      values[3] = WrappingSum(values[3], size);
    }
  }

  // What stands beside a dump of the peak (ImportedTrace::cumulative): of its end.
  void AddEnd(const ImportedTrace& trace, uint32_t dump) {
    const CumulativeTable& rows = trace.cumulative;
    const auto live = [](int64_t allocated, int64_t freed) {
      return allocated - std::clamp<int64_t>(freed, 0, std::max<int64_t>(0, allocated));
    };
    const auto [first, last] = rows.RowsOf(dump);
    for (size_t row = first; row < last; ++row) {
      const HeapValues added = {rows.alloc_count[row], rows.alloc_size[row],
                                live(rows.alloc_count[row], rows.free_count[row]),
                                live(rows.alloc_size[row], rows.free_size[row])};
      HeapValues& values = Of(rows.callsite[row]);
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = WrappingSum(values[i], added[i]);
    }
  }

  const Column<uint32_t>& callsites() const { return callsites_; }

  const HeapValues& values(size_t i) const { return values_[i]; }

  // Those of a callsite, which has some from then on.
  HeapValues& Of(uint32_t callsite) {
    slots_.Prepare([&](uint32_t slot) { return Mix(callsites_[slot]); });
    uint32_t& slot = slots_.Find(
        Mix(callsite), [&](uint32_t other) { return callsites_[other] == callsite; });
    if (slot == kNoId) {
      slot = static_cast<uint32_t>(callsites_.size());
      slots_.CountAdded();
      callsites_.push_back(callsite);
      values_.push_back({});
    }
    return values_[slot];
  }

 private:
  RowIndex slots_;
  Column<uint32_t> callsites_;
  Column<HeapValues> values_;
};

}  // namespace heapprofd
