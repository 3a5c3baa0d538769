// One heap of one process: which sampled allocations are live, and the sums per callsite.
//
// Peak: the live sum per callsite at the moment the total was highest is kept without
// copying all callsites at every new maximum. Each new maximum starts a generation; a
// callsite's value is saved as its peak just before its first change in a generation, so
// a callsite that did not change since still holds the value it had at the maximum. That
// is where the memory was; how much it was is estimated apart (peak_estimator.h), and the
// callsites' sampled parts are scaled to it.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/column.h"
#include "base/flat_map.h"
#include "base/random_seed.h"
#include "profile/block_shapes.h"
#include "profile/model.h"
#include "profile/peak_estimator.h"

namespace heapprofd {

struct SampledAllocation {
  uint64_t address = 0;
  uint64_t size = 0;      // bytes
  uint64_t interval = 1;  // bytes, at most 2^40
  CallsiteId callsite = 0;
  ThreadId thread = kUnknownThread;
};

// Of a block; 0: nobody knows by whom or when.
struct Freeing {
  ThreadId thread = kUnknownThread;
  uint64_t now_ns = 0;
};

class LiveHeap {
 public:
  // `seed`: of what the estimate of the peak draws.
  explicit LiveHeap(uint64_t seed = RandomSeed()) : peak_estimator_(seed) {}

  // An older allocation at the same address was freed unseen and is counted as freed.
  // Order of calls is the order of events.
  void Allocate(const SampledAllocation& allocation, uint64_t now_ns);

  // Unknown addresses are ignored: the client may report frees of unsampled blocks. A
  // free that is part of a realloc may be undone by `thread_id`'s next UndoRealloc.
  void Free(uint64_t address, const Freeing& freeing = {});
  void FreeForRealloc(uint64_t address, uint32_t thread_id, const Freeing& freeing = {});
  void UndoRealloc(uint64_t address, uint32_t thread_id, uint64_t now_ns);

  // Fills callsites, threads, the peak and what can be live. `dump` has its sampling
  // interval and its exact totals already.
  void Snapshot(HeapDump* dump) const;

  // Fills the shapes, which takes as long as there are live samples. Returns how many
  // blocks are in none.
  uint64_t SnapshotShapes(uint64_t now_ns, HeapDump* dump) const;

  // Fills the blocks with the `most` largest, which takes as long as there are live
  // samples. Returns how many it has left out.
  uint64_t SnapshotBlocks(size_t most, HeapDump* dump) const;

  // `visit(const SampledAllocation&, age in ns)` of a few thousand live samples, in no
  // order; `at` says where to go on, 0 at first. False: these were the last. What is
  // allocated or freed between two calls may be seen twice or not at all.
  template <typename Visit>
  bool VisitSomeLive(size_t* at, uint64_t now_ns, Visit visit) const {
    constexpr size_t kPlaces = 4096;
    *at = samples_.VisitSome(*at, kPlaces, [&](uint64_t address, const Sample& sample) {
      visit(SampledAllocation{.address = address,
                              .size = sample.size(),
                              .interval = sample.interval(),
                              .callsite = callsites_[sample.row()].callsite,
                              .thread = sample.thread()},
            sample.AgeNs(now_ns));
    });
    return *at < samples_.place_count();
  }

  const Estimate& live() const { return live_; }

  // Of that, no more than the exact totals of `counted` allow.
  double LiveBytes(const HeapDump& counted) const;

  const Estimate& allocated() const { return allocated_; }

  size_t live_samples() const { return samples_.size(); }

  // Those that had samples, of which there are few beside all callers of a process.
  size_t callsite_count() const { return callsites_.size(); }

  bool HasCallsite(CallsiteId callsite) const { return rows_.Contains(callsite); }

  // What it takes of our memory.
  size_t bytes() const;

  // What the next sample may take beside that for a moment.
  size_t growth_bytes() const {
    return samples_.growth_bytes() + rows_.growth_bytes() + shapes_.growth_bytes();
  }

  // Lets the processor fetch what the next event at this address will read.
  void Prefetch(uint64_t address) const { samples_.Prefetch(address); }

 private:
  // As small as the limits of what it holds allow, for there are millions.
  class Sample {
   public:
    Sample() = default;
    // `row`: of callsites_.
    Sample(const SampledAllocation& allocation,
           uint32_t row,
           uint8_t halves,
           uint64_t now_ns);

    uint64_t size() const { return size_; }

    uint64_t interval() const { return interval_; }

    uint8_t halves() const { return static_cast<uint8_t>(halves_); }  // PeakEstimator's

    uint32_t row() const { return static_cast<uint32_t>(row_); }

    ThreadId thread() const { return static_cast<ThreadId>(thread_); }

    // Rounded, and at least 1.
    uint64_t AgeNs(uint64_t now_ns) const;

    BlockShapes::End EndBy(const Freeing& freeing) const;

   private:
    static constexpr int kTimeShift = 8;  // units of 256 ns, which last for a year
    static constexpr int kSizeBits = 57;
    static constexpr int kHighBits = 7;
    static constexpr int kIntervalBits = 41;
    static constexpr int kThreadBits = 15;
    static constexpr int kRowBits = 24;
    static constexpr int kLowBits = 40;

    uint64_t size_ : kSizeBits = 0;
    uint64_t born_high_ : kHighBits = 0;
    uint64_t interval_ : kIntervalBits = 0;
    uint64_t halves_ : 8 = 0;
    uint64_t thread_ : kThreadBits = 0;
    uint64_t row_ : kRowBits = 0;
    uint64_t born_low_ : kLowBits = 0;
  };

  // The part of a live sum that is no estimate.
  struct Certain {
    // A sample begins or, with `sign` -1, ceases to be live.
    void Add(const Sample& sample, double sign);

    // The sum with its other part times `scale`.
    Estimate ScaleRest(const Estimate& sum, double scale) const;

    double bytes = 0;
    double count = 0;
  };

  struct CallsiteState {
    CallsiteId callsite = 0;
    CallsiteTotals totals = {};
    Certain live_certain = {};
    Estimate peak = {};
    Certain peak_certain = {};
    uint64_t peak_generation =
        0;  // the peak's values belong to this generation; older: those of live do
  };

  struct PendingRealloc {
    uint64_t address = 0;
    Sample sample;
    BlockShapes::End end;
  };

  // The row of this callsite in callsites_.
  uint32_t RowOf(CallsiteId callsite);
  // Before its values change.
  CallsiteState& Touch(uint32_t row);
  // All of them, in the order of their callsites.
  std::vector<uint32_t> OrderedRows() const;
  void AddLive(const Estimate& estimate, uint64_t now_ns);
  bool Take(uint64_t address, const Freeing& freeing, PendingRealloc* taken);
  void CountFreed(const Sample& sample, const BlockShapes::End& end);
  CallsiteTotals& TotalsOf(ThreadId thread);
  // Bytes of live allocations that are not certain_live(): more cannot be, by the exact
  // totals; infinite when these are not known.
  double PossibleRest(const HeapDump& dump) const;
  BoundedBytes PeakTotal(const HeapDump& dump) const;

  FlatMap<Sample> samples_;  // by address
  BlockShapes shapes_;       // of rows of callsites_
  std::unordered_map<uint32_t, PendingRealloc> pending_reallocs_;  // by thread
  FlatMap<uint32_t> rows_;                                         // by CallsiteId
  Column<CallsiteState> callsites_;      // with samples, in the order of their first ones
  std::vector<CallsiteTotals> threads_;  // by ThreadId
  Estimate live_;
  Estimate allocated_;
  PeakEstimator peak_estimator_;
  Estimate peak_;            // the highest of live_
  double widest_ = 0;        // the highest variance of live_
  double peak_certain_ = 0;  // bytes of it
  uint64_t peak_ns_ = 0;
  uint64_t peak_generation_ = 1;
};

}  // namespace heapprofd
