// All heaps of one target while it is recorded: malloc's, and those that the program
// reports itself. What is live in each, and a dump of each.
//
// One thread: the session's. Counters and names are the target's word.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/target/heap_table.h"
#include "engine/target/published_config.h"
#include "profile/live_heap.h"
#include "profile/model.h"
#include "wire/memory_files.h"
#include "wire/records.h"

namespace heapprofd {

class TargetHeaps {
 public:
  // Both outlive it.
  TargetHeaps(SharedMemory* memory, const PublishedConfig* published);

  // False: no more callsites are to be added to this heap.
  bool MayAdd(uint8_t heap_id, CallsiteId callsite) {
    return heap_id == kMallocHeapId || others_.MayAdd(Other(heap_id), callsite);
  }

  void Allocate(uint8_t heap_id, const SampledAllocation& allocation, uint64_t now_ns) {
    if (heap_id == kMallocHeapId)
      malloc_.Allocate(allocation, now_ns);
    else
      Other(heap_id).Allocate(allocation, now_ns);
  }

  void Free(const FreeRecord& record, const Freeing& freeing) {
    if (record.heap_id != kMallocHeapId)
      FreeInOther(record, freeing);
    else if (record.is_realloc != 0)
      malloc_.FreeForRealloc(record.address, record.thread_id, freeing);
    else
      malloc_.Free(record.address, freeing);
  }

  // The realloc that this free was part of has failed.
  void UndoFree(const FreeRecord& record, uint64_t now_ns);

  // Brings back the names of heaps that the session does not record. Heaps that it does
  // record are known from then on.
  std::vector<std::string> FindUnrecorded();

  // One dump per heap, with exact totals; times are the caller's.
  std::vector<HeapDump> Snapshot() const;

  // As LiveHeap's, of these dumps, which Snapshot has returned.
  uint64_t SnapshotShapes(uint64_t now_ns, std::span<HeapDump> dumps) const;

  // The same of blocks, those of malloc alone.
  uint64_t SnapshotBlocks(std::span<HeapDump> dumps) const;

  const LiveHeap& malloc_heap() const { return malloc_; }

  // Of all together; no more than the exact totals allow.
  double LiveBytes() const;

  size_t live_samples() const;

  // What they take of our memory, and what the next live sample of this heap takes beside
  // that for a moment.
  size_t bytes() const { return malloc_.bytes() + others_.bytes(); }

  size_t GrowthBytes(uint8_t heap_id) {
    return heap_id == kMallocHeapId ? malloc_.growth_bytes() : GrowthOfOther(heap_id);
  }

  // Lets the processor fetch what an event at this address will read.
  void Prefetch(uint64_t address) const { malloc_.Prefetch(address); }

 private:
  CustomHeap& Other(uint8_t heap_id);
  void FreeInOther(const FreeRecord& record, const Freeing& freeing);
  size_t GrowthOfOther(uint8_t heap_id);
  // With nothing but its exact totals.
  HeapDump CountedMalloc() const;
  HeapDump DumpOfMalloc() const;

  SharedMemory* memory_;
  const PublishedConfig* published_;
  uint64_t malloc_interval_;  // of the session; 0: malloc is not recorded
  LiveHeap malloc_;
  HeapTable others_;
};

}  // namespace heapprofd
