// One heap of one process: which sampled allocations are live, and what each event of one
// changes: the sums of its callsite, its thread and the heap, and the shapes.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/flat_map.h"
#include "base/random_seed.h"
#include "profile/block_shapes.h"
#include "profile/callsite_sums.h"
#include "profile/heap_total.h"
#include "profile/live_sample.h"
#include "profile/model.h"

namespace heapprofd {

class LiveHeap {
 public:
  // `seed`: of what the estimate of the peak draws.
  explicit LiveHeap(uint64_t seed = RandomSeed()) : total_(seed) {}

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
    *at =
        samples_.VisitSome(*at, kPlaces, [&](uint64_t address, const LiveSample& sample) {
          visit(SampledAllocation{.address = address,
                                  .size = sample.size(),
                                  .interval = sample.interval(),
                                  .callsite = callsites_.CallsiteOf(sample.row()),
                                  .thread = sample.thread()},
                sample.AgeNs(now_ns));
        });
    return *at < samples_.place_count();
  }

  const HeapTotal& total() const { return total_; }

  size_t live_samples() const { return samples_.size(); }

  // Those that had samples, of which there are few beside all callers of a process.
  size_t callsite_count() const { return callsites_.size(); }

  bool HasCallsite(CallsiteId callsite) const { return callsites_.Contains(callsite); }

  // What it takes of our memory.
  size_t bytes() const;

  // What the next sample may take beside that for a moment.
  size_t growth_bytes() const {
    return samples_.growth_bytes() + callsites_.growth_bytes() + shapes_.growth_bytes();
  }

  // Lets the processor fetch what the next event at this address will read.
  void Prefetch(uint64_t address) const { samples_.Prefetch(address); }

 private:
  struct PendingRealloc {
    uint64_t address = 0;
    LiveSample sample;
    BlockShapes::End end;
  };

  // More is live.
  void NotePeak(uint64_t now_ns);
  bool Take(uint64_t address, const Freeing& freeing, PendingRealloc* taken);
  void CountFreed(const LiveSample& sample, const BlockShapes::End& end);
  CallsiteTotals& TotalsOf(ThreadId thread);

  FlatMap<LiveSample> samples_;  // by address
  CallsiteSums callsites_;
  BlockShapes shapes_;  // of rows of callsites_
  std::unordered_map<uint32_t, PendingRealloc> pending_reallocs_;  // by thread
  std::vector<CallsiteTotals> threads_;                            // by ThreadId
  HeapTotal total_;
};

}  // namespace heapprofd
