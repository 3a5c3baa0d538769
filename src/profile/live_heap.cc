#include "profile/live_heap.h"

#include <utility>

#include "profile/estimate.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxPendingReallocs = 65536;  // thread ids come from the target

}  // namespace

LiveHeap::CallsiteState& LiveHeap::Touch(CallsiteId callsite) {
  if (callsite >= callsites_.size())
    callsites_.resize(size_t{callsite} + 1);
  CallsiteState& state = callsites_[callsite];
  if (state.peak_generation != peak_generation_) {
    state.peak = state.totals.live();
    state.peak_generation = peak_generation_;
  }
  state.has_samples = true;
  return state;
}

CallsiteTotals& LiveHeap::TotalsOf(ThreadId thread) {
  if (thread >= threads_.size())
    threads_.resize(size_t{thread} + 1);
  return threads_[thread];
}

void LiveHeap::Allocate(const SampledAllocation& allocation, uint64_t now_ns) {
  const Sample sample{.size = allocation.size,
                      .interval = allocation.interval,
                      .callsite = allocation.callsite,
                      .thread = allocation.thread};
  const auto [entry, is_new] = samples_.Insert(allocation.address, sample);
  if (!is_new)
    CountFreed(std::exchange(*entry, sample));
  const Estimate estimate = EstimateOfSample(allocation.size, allocation.interval);
  Touch(allocation.callsite).totals.allocated += estimate;
  TotalsOf(allocation.thread).allocated += estimate;
  allocated_ += estimate;
  AddLive(estimate, now_ns);
}

void LiveHeap::AddLive(const Estimate& estimate, uint64_t now_ns) {
  live_ += estimate;
  if (live_.bytes > peak_.bytes) {
    peak_ = live_;
    peak_ns_ = now_ns;
    ++peak_generation_;
  }
}

bool LiveHeap::Take(uint64_t address, Sample* taken) {
  const Sample* found = samples_.Find(address);
  if (found == nullptr)
    return false;
  *taken = *found;
  samples_.Erase(address);
  CountFreed(*taken);
  return true;
}

void LiveHeap::CountFreed(const Sample& sample) {
  const Estimate estimate = EstimateOfSample(sample.size, sample.interval);
  Touch(sample.callsite).totals.freed += estimate;
  TotalsOf(sample.thread).freed += estimate;
  live_ -= estimate;
}

void LiveHeap::Free(uint64_t address) {
  Sample taken;
  Take(address, &taken);
}

void LiveHeap::FreeForRealloc(uint64_t address, uint32_t thread_id) {
  Sample taken;
  pending_reallocs_.erase(thread_id);
  if (!Take(address, &taken))
    return;
  if (pending_reallocs_.size() >= kMaxPendingReallocs)
    pending_reallocs_.clear();
  pending_reallocs_[thread_id] = PendingRealloc{.address = address, .sample = taken};
}

void LiveHeap::UndoRealloc(uint64_t address, uint32_t thread_id, uint64_t now_ns) {
  const auto found = pending_reallocs_.find(thread_id);
  if (found == pending_reallocs_.end() || found->second.address != address)
    return;
  const Sample sample = found->second.sample;
  pending_reallocs_.erase(found);
  if (!samples_.Insert(address, sample).second)
    return;
  const Estimate estimate = EstimateOfSample(sample.size, sample.interval);
  Touch(sample.callsite).totals.freed -= estimate;
  TotalsOf(sample.thread).freed -= estimate;
  AddLive(estimate, now_ns);
}

void LiveHeap::Snapshot(HeapDump* dump) const {
  dump->callsites.clear();
  dump->peak.clear();
  dump->peak_ns = peak_ns_;
  dump->peak_total = peak_;
  dump->threads = threads_;
  for (size_t i = 0; i < callsites_.size(); ++i) {
    const CallsiteState& state = callsites_[i];
    if (!state.has_samples)
      continue;
    const auto id = static_cast<CallsiteId>(i);
    dump->callsites.emplace(id, state.totals);
    const Estimate at_peak =
        state.peak_generation == peak_generation_ ? state.peak : state.totals.live();
    if (at_peak.bytes > 0)
      dump->peak.emplace(id, at_peak);
  }
}

}  // namespace heapprofd
