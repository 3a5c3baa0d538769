// One heap of one process: which sampled allocations are live, and the sums per callsite.
//
// Peak: the live sum per callsite at the moment the total was highest is kept without
// copying all callsites at every new maximum. Each new maximum starts a generation; a
// callsite's value is saved as its peak just before its first change in a generation, so
// a callsite that did not change since still holds the value it had at the maximum.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/flat_map.h"
#include "profile/model.h"

namespace heapprofd {

struct SampledAllocation {
  uint64_t address = 0;
  uint64_t size = 0;      // bytes
  uint64_t interval = 1;  // bytes
  CallsiteId callsite = 0;
  ThreadId thread = kUnknownThread;
};

class LiveHeap {
 public:
  // An older allocation at the same address was freed unseen and is counted as freed.
  // Order of calls is the order of events.
  void Allocate(const SampledAllocation& allocation, uint64_t now_ns);

  // Unknown addresses are ignored: the client may report frees of unsampled blocks. A
  // free that is part of a realloc may be undone by `thread_id`'s next UndoRealloc.
  void Free(uint64_t address);
  void FreeForRealloc(uint64_t address, uint32_t thread_id);
  void UndoRealloc(uint64_t address, uint32_t thread_id, uint64_t now_ns);

  // Fills callsites, threads, peak, peak_ns and peak_total.
  void Snapshot(HeapDump* dump) const;

  const Estimate& live() const { return live_; }

  const Estimate& allocated() const { return allocated_; }

  const Estimate& peak() const { return peak_; }

  uint64_t peak_ns() const { return peak_ns_; }

  size_t live_samples() const { return samples_.size(); }

  // What the live samples take of our memory.
  size_t bytes() const { return samples_.bytes(); }

  // Lets the processor fetch what the next event at this address will read.
  void Prefetch(uint64_t address) const { samples_.Prefetch(address); }

 private:
  struct Sample {
    uint64_t size;
    uint64_t interval;
    CallsiteId callsite;
    ThreadId thread;
  };

  struct CallsiteState {
    CallsiteTotals totals;
    Estimate peak;
    uint64_t peak_generation =
        0;  // `peak` belongs to this generation; older: live is the peak value
    bool has_samples = false;
  };

  struct PendingRealloc {
    uint64_t address = 0;
    Sample sample{};
  };

  CallsiteState& Touch(CallsiteId callsite);
  void AddLive(const Estimate& estimate, uint64_t now_ns);
  bool Take(uint64_t address, Sample* taken);
  void CountFreed(const Sample& sample);
  CallsiteTotals& TotalsOf(ThreadId thread);

  FlatMap<Sample> samples_;                                        // by address
  std::unordered_map<uint32_t, PendingRealloc> pending_reallocs_;  // by thread
  std::vector<CallsiteState> callsites_;                           // by CallsiteId
  std::vector<CallsiteTotals> threads_;                            // by ThreadId
  Estimate live_;
  Estimate allocated_;
  Estimate peak_;
  uint64_t peak_ns_ = 0;
  uint64_t peak_generation_ = 1;
};

}  // namespace heapprofd
