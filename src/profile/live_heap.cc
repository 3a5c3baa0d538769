#include "profile/live_heap.h"

#include <algorithm>
#include <functional>

#include "profile/estimate.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxPendingReallocs = 65536;  // thread ids come from the target

}  // namespace

CallsiteTotals& LiveHeap::TotalsOf(ThreadId thread) {
  if (thread >= threads_.size())
    threads_.resize(size_t{thread} + 1);
  return threads_[thread];
}

void LiveHeap::Allocate(const SampledAllocation& allocation, uint64_t now_ns) {
  const auto [entry, is_new] = samples_.Insert(allocation.address, LiveSample());
  if (!is_new)
    CountFreed(*entry, {});
  const uint32_t row = callsites_.RowOf(allocation.callsite);
  const Estimate estimate = EstimateOfSample(allocation.size, allocation.interval);
  *entry = LiveSample(allocation, row, total_.Allocate(allocation, estimate), now_ns);
  callsites_.Allocate(*entry, estimate);
  shapes_.Allocate({row, allocation.thread}, allocation.size, estimate);
  TotalsOf(allocation.thread).allocated += estimate;
  NotePeak(now_ns);
}

void LiveHeap::NotePeak(uint64_t now_ns) {
  if (total_.NotePeak(now_ns))
    callsites_.BeginPeak();
}

bool LiveHeap::Take(uint64_t address, const Freeing& freeing, PendingRealloc* taken) {
  const LiveSample* found = samples_.Find(address);
  if (found == nullptr)
    return false;
  *taken = {.address = address, .sample = *found, .end = found->EndBy(freeing)};
  samples_.Erase(address);
  CountFreed(taken->sample, taken->end);
  return true;
}

void LiveHeap::CountFreed(const LiveSample& sample, const BlockShapes::End& end) {
  const Estimate estimate = EstimateOfSample(sample.size(), sample.interval());
  total_.Free(sample, estimate);
  callsites_.Free(sample, estimate);
  TotalsOf(sample.thread()).freed += estimate;
  shapes_.Free(sample.row(), end, estimate, 1);
}

size_t LiveHeap::bytes() const {
  constexpr size_t kPerRealloc = sizeof(PendingRealloc) + 48;  // and what finds it
  return samples_.bytes() + shapes_.bytes() + callsites_.bytes() +
         threads_.capacity() * sizeof(CallsiteTotals) +
         pending_reallocs_.size() * kPerRealloc;
}

void LiveHeap::Free(uint64_t address, const Freeing& freeing) {
  PendingRealloc taken;
  Take(address, freeing, &taken);
}

void LiveHeap::FreeForRealloc(uint64_t address,
                              uint32_t thread_id,
                              const Freeing& freeing) {
  PendingRealloc taken;
  pending_reallocs_.erase(thread_id);
  if (!Take(address, freeing, &taken))
    return;
  if (pending_reallocs_.size() >= kMaxPendingReallocs)
    pending_reallocs_.clear();
  pending_reallocs_[thread_id] = taken;
}

void LiveHeap::UndoRealloc(uint64_t address, uint32_t thread_id, uint64_t now_ns) {
  const auto found = pending_reallocs_.find(thread_id);
  if (found == pending_reallocs_.end() || found->second.address != address)
    return;
  const LiveSample sample = found->second.sample;
  const BlockShapes::End end = found->second.end;
  pending_reallocs_.erase(found);
  if (!samples_.Insert(address, sample).second)
    return;
  const Estimate estimate = EstimateOfSample(sample.size(), sample.interval());
  total_.Return(sample, estimate);
  callsites_.Return(sample, estimate);
  TotalsOf(sample.thread()).freed -= estimate;
  shapes_.Free(sample.row(), end, estimate, -1);
  NotePeak(now_ns);
}

void LiveHeap::Snapshot(HeapDump* dump) const {
  total_.Snapshot(dump);
  callsites_.Snapshot(total_.PeakScale(dump->peak_total), dump);
  dump->threads = threads_;
}

uint64_t LiveHeap::SnapshotShapes(uint64_t now_ns, HeapDump* dump) const {
  BlockShapes live;
  samples_.ForEach([&](uint64_t /*address*/, const LiveSample& sample) {
    live.AddLive({sample.row(), sample.thread()}, sample.size(), sample.AgeNs(now_ns),
                 EstimateOfSample(sample.size(), sample.interval()));
  });
  dump->shapes.clear();
  shapes_.AppendTo(&dump->shapes);
  live.AppendTo(&dump->shapes);
  for (ShapeRow& shape : dump->shapes) {
    if (shape.callsite != kNoId)
      shape.callsite = callsites_.CallsiteOf(shape.callsite);
  }
  SortShapes(&dump->shapes);
  return shapes_.left_out() + live.left_out();
}

// Twice as many as are wanted are held at most.
uint64_t LiveHeap::SnapshotBlocks(size_t most, HeapDump* dump) const {
  std::vector<LiveBlock> blocks;
  blocks.reserve(std::min(samples_.size(), 2 * most));
  uint64_t least = 0;  // smaller ones are not among the largest
  const auto drop_small = [&] {
    std::ranges::nth_element(blocks, blocks.begin() + static_cast<ptrdiff_t>(most),
                             std::ranges::greater(), &LiveBlock::size);
    least = blocks[most].size;
    blocks.resize(most);
  };
  samples_.ForEach([&](uint64_t address, const LiveSample& sample) {
    if (sample.size() < least)
      return;
    blocks.push_back({address, sample.size(), callsites_.CallsiteOf(sample.row())});
    if (blocks.size() == 2 * most)
      drop_small();
  });
  if (blocks.size() > most)
    drop_small();
  std::ranges::sort(blocks, {}, &LiveBlock::address);
  blocks.shrink_to_fit();
  dump->blocks = std::move(blocks);
  return samples_.size() - dump->blocks.size();
}

}  // namespace heapprofd
