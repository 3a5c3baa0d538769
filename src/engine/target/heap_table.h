// The heaps of one process beside malloc's, by the ids of its records. Names come from
// the process: bounded, made unique and fit to be part of a file name.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "profile/live_heap.h"
#include "profile/model.h"
#include "wire/shared_memory.h"

namespace heapprofd {

class CustomHeap {
 public:
  explicit CustomHeap(std::string name, uint64_t first_interval)
      : name_(std::move(name)),
        first_interval_(first_interval),
        interval_(first_interval) {}

  const std::string& name() const { return name_; }

  // `allocation.address` is what the program calls the block.
  void Allocate(const SampledAllocation& allocation, uint64_t now_ns);

  void Free(uint64_t id, const Freeing& freeing) { live_.Free(id, freeing); }

  const LiveHeap& live() const { return live_; }

  // Fills all of the dump that can be known from the records. `dump` has its exact totals
  // already.
  void Snapshot(const HeapRules& rules, HeapDump* dump) const;

 private:
  std::string name_;
  uint64_t first_interval_;
  uint64_t interval_;  // the largest of its samples; adaptive sampling raises it
  LiveHeap live_;
};

class HeapTable {
 public:
  // The heap with this id, known from now on; names are looked up in `client` once.
  // `rules` are the session's.
  CustomHeap& Get(uint8_t heap_id, const ClientBlock& client, const HeapRules& rules);

  // nullptr: no sample of it has arrived.
  CustomHeap* Find(uint8_t heap_id) { return heaps_[heap_id].get(); }

  // Makes heaps known that are recorded and have had no sample yet. Returns the names of
  // those that the session does not record.
  std::vector<std::string> FindPublished(const ClientBlock& client,
                                         const HeapRules& rules);

  // One dump per heap, with exact totals, in the order of ids. Times are the caller's.
  std::vector<HeapDump> Snapshot(const ClientBlock& client, const HeapRules& rules) const;

  // As LiveHeap's, of these dumps, which Snapshot has returned.
  uint64_t SnapshotShapes(uint64_t now_ns, std::span<HeapDump> dumps) const;

  // False: no more callsites are to be added to this heap, all have too many together.
  bool MayAdd(const CustomHeap& heap, CallsiteId callsite) const;

  // As estimated: it is asked for too often to look at all exact totals.
  double LiveBytes() const;
  size_t live_samples() const;

  // What they take of our memory.
  size_t bytes() const;

 private:
  // One per heap, in the order of ids, with nothing but exact totals.
  std::vector<HeapDump> Counted(const ClientBlock& client) const;

  std::array<std::unique_ptr<CustomHeap>, kMaxHeaps> heaps_;
};

}  // namespace heapprofd
