// The sums of each callsite of a heap: what its samples say was allocated and freed, and
// what it had live when the heap had most.
//
// The latter is kept without copying all callsites at every new maximum. Each new maximum
// starts a generation; a callsite's value is saved as its peak just before its first
// change in a generation, so a callsite that did not change since still holds the value
// it had at the maximum. That is where the memory was; how much it was is estimated apart
// (profile/heap_total.h), and the callsites' sampled parts are scaled to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/column.h"
#include "base/flat_map.h"
#include "profile/live_sample.h"
#include "profile/model.h"

namespace heapprofd {

class CallsiteSums {
 public:
  // The row of this callsite, which has one from now on.
  uint32_t RowOf(CallsiteId callsite) {
    const auto next = static_cast<uint32_t>(callsites_.size());
    const auto [row, is_new] = rows_.Insert(callsite, next);
    if (is_new)
      callsites_.push_back({.callsite = callsite});
    return *row;
  }

  CallsiteId CallsiteOf(uint32_t row) const { return callsites_[row].callsite; }

  // A sample of its row begins to be live. `estimate`: EstimateOfSample.
  void Allocate(const LiveSample& sample, const Estimate& estimate) {
    State& state = Touch(sample.row());
    state.totals.allocated += estimate;
    state.live_certain.Add(sample, 1);
  }

  // It is live no longer, or again after all.
  void Free(const LiveSample& sample, const Estimate& estimate) {
    State& state = Touch(sample.row());
    state.totals.freed += estimate;
    state.live_certain.Add(sample, -1);
  }

  void Return(const LiveSample& sample, const Estimate& estimate) {
    State& state = Touch(sample.row());
    state.totals.freed -= estimate;
    state.live_certain.Add(sample, 1);
  }

  // The heap has most as it is now.
  void BeginPeak() { ++peak_generation_; }

  size_t size() const { return callsites_.size(); }

  bool Contains(CallsiteId callsite) const { return rows_.Contains(callsite); }

  // What they take of our memory, and what the next one may take beside that.
  size_t bytes() const { return rows_.bytes() + callsites_.size() * sizeof(State); }

  size_t growth_bytes() const { return rows_.growth_bytes(); }

  // Fills callsites and the peak, whose sampled parts are taken times `peak_scale`.
  void Snapshot(double peak_scale, HeapDump* dump) const;

 private:
  // The part of a live sum that is no estimate.
  struct Certain {
    // A sample begins or, with `sign` -1, ceases to be live.
    void Add(const LiveSample& sample, double sign) {
      if (sample.halves() != 0)
        return;
      bytes += sign * static_cast<double>(sample.size());
      count += sign;
    }

    // The sum with its other part times `scale`.
    Estimate ScaleRest(const Estimate& sum, double scale) const;

    double bytes = 0;
    double count = 0;
  };

  struct State {
    CallsiteId callsite = 0;
    CallsiteTotals totals = {};
    Certain live_certain = {};
    Estimate peak = {};
    Certain peak_certain = {};
    // The peak's values belong to this generation; older: those of live do.
    uint64_t peak_generation = 0;
  };

  // Before its values change.
  State& Touch(uint32_t row) {
    State& state = callsites_[row];
    if (state.peak_generation != peak_generation_) {
      state.peak = state.totals.live();
      state.peak_certain = state.live_certain;
      state.peak_generation = peak_generation_;
    }
    return state;
  }

  // All of them, in the order of their callsites.
  std::vector<uint32_t> OrderedRows() const;

  FlatMap<uint32_t> rows_;   // by CallsiteId
  Column<State> callsites_;  // in the order of their first samples
  uint64_t peak_generation_ = 1;
};

}  // namespace heapprofd
