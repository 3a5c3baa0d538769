#include "profile/live_heap.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "profile/estimate.h"
#include "profile/limits.h"

namespace heapprofd {
namespace {

constexpr uint64_t Mask(int bits) {
  return (uint64_t{1} << bits) - 1;
}

constexpr size_t kMaxPendingReallocs = 65536;  // thread ids come from the target

}  // namespace

LiveHeap::Sample::Sample(const SampledAllocation& allocation,
                         uint32_t row,
                         uint8_t halves,
                         uint64_t now_ns)
    : size_(allocation.size & Mask(kSizeBits)),
      born_high_(now_ns >> kTimeShift >> kLowBits & Mask(kHighBits)),
      interval_(allocation.interval & Mask(kIntervalBits)),
      halves_(halves),
      thread_(allocation.thread & Mask(kThreadBits)),
      row_(row & Mask(kRowBits)),
      born_low_(now_ns >> kTimeShift & Mask(kLowBits)) {}

uint64_t LiveHeap::Sample::AgeNs(uint64_t now_ns) const {
  constexpr uint64_t kMask = Mask(kLowBits + kHighBits);
  const uint64_t born = uint64_t{born_high_} << kLowBits | born_low_;
  const uint64_t age = ((now_ns >> kTimeShift) - born) & kMask;
  const bool is_ahead = age > kMask / 2;  // clocks of several processors differ a little
  return age == 0 || is_ahead ? 1 : age << kTimeShift;
}

BlockShapes::End LiveHeap::Sample::EndBy(const Freeing& freeing) const {
  if (freeing.now_ns == 0)
    return {};
  const uint64_t age = AgeNs(freeing.now_ns);
  const bool is_its_thread =
      freeing.thread != kUnknownThread && freeing.thread == thread();
  return {.lived_ns = age, .is_temporary = is_its_thread && age <= kTemporaryNs};
}

void LiveHeap::Certain::Add(const Sample& sample, double sign) {
  if (sample.halves() != 0)
    return;
  bytes += sign * static_cast<double>(sample.size());
  count += sign;
}

Estimate LiveHeap::Certain::ScaleRest(const Estimate& sum, double scale) const {
  return {.bytes = bytes + (sum.bytes - bytes) * scale,
          .count = count + (sum.count - count) * scale,
          .bytes_variance = sum.bytes_variance * scale * scale,
          .count_variance = sum.count_variance * scale * scale};
}

uint32_t LiveHeap::RowOf(CallsiteId callsite) {
  const auto next = static_cast<uint32_t>(callsites_.size());
  const auto [row, is_new] = rows_.Insert(callsite, next);
  if (is_new)
    callsites_.push_back({.callsite = callsite});
  return *row;
}

LiveHeap::CallsiteState& LiveHeap::Touch(uint32_t row) {
  CallsiteState& state = callsites_[row];
  if (state.peak_generation != peak_generation_) {
    state.peak = state.totals.live();
    state.peak_certain = state.live_certain;
    state.peak_generation = peak_generation_;
  }
  return state;
}

std::vector<uint32_t> LiveHeap::OrderedRows() const {
  std::vector<uint32_t> rows(callsites_.size());
  std::iota(rows.begin(), rows.end(), 0u);
  std::ranges::sort(rows, {}, [this](uint32_t row) { return callsites_[row].callsite; });
  return rows;
}

CallsiteTotals& LiveHeap::TotalsOf(ThreadId thread) {
  if (thread >= threads_.size())
    threads_.resize(size_t{thread} + 1);
  return threads_[thread];
}

void LiveHeap::Allocate(const SampledAllocation& allocation, uint64_t now_ns) {
  const auto [entry, is_new] = samples_.Insert(allocation.address, Sample());
  if (!is_new)
    CountFreed(*entry, {});
  const uint32_t row = RowOf(allocation.callsite);
  *entry = Sample(allocation, row,
                  peak_estimator_.Allocate(allocation.size, allocation.interval), now_ns);
  const Estimate estimate = EstimateOfSample(allocation.size, allocation.interval);
  CallsiteState& state = Touch(row);
  state.totals.allocated += estimate;
  state.live_certain.Add(*entry, 1);
  shapes_.Allocate({row, allocation.thread}, allocation.size, estimate);
  TotalsOf(allocation.thread).allocated += estimate;
  allocated_ += estimate;
  AddLive(estimate, now_ns);
}

void LiveHeap::AddLive(const Estimate& estimate, uint64_t now_ns) {
  live_ += estimate;
  widest_ = std::max(widest_, live_.bytes_variance);
  if (live_.bytes > peak_.bytes) {
    peak_ = live_;
    peak_certain_ = peak_estimator_.certain_live();
    peak_ns_ = now_ns;
    ++peak_generation_;
  }
}

bool LiveHeap::Take(uint64_t address, const Freeing& freeing, PendingRealloc* taken) {
  const Sample* found = samples_.Find(address);
  if (found == nullptr)
    return false;
  *taken = {.address = address, .sample = *found, .end = found->EndBy(freeing)};
  samples_.Erase(address);
  CountFreed(taken->sample, taken->end);
  return true;
}

void LiveHeap::CountFreed(const Sample& sample, const BlockShapes::End& end) {
  const Estimate estimate = EstimateOfSample(sample.size(), sample.interval());
  peak_estimator_.Free(sample.size(), sample.interval(), sample.halves());
  CallsiteState& state = Touch(sample.row());
  state.totals.freed += estimate;
  state.live_certain.Add(sample, -1);
  TotalsOf(sample.thread()).freed += estimate;
  shapes_.Free(sample.row(), end, estimate, 1);
  live_ -= estimate;
}

size_t LiveHeap::bytes() const {
  constexpr size_t kPerRealloc = sizeof(PendingRealloc) + 48;  // and what finds it
  return samples_.bytes() + shapes_.bytes() + rows_.bytes() +
         callsites_.size() * sizeof(CallsiteState) +
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
  const Sample sample = found->second.sample;
  const BlockShapes::End end = found->second.end;
  pending_reallocs_.erase(found);
  if (!samples_.Insert(address, sample).second)
    return;
  const Estimate estimate = EstimateOfSample(sample.size(), sample.interval());
  peak_estimator_.Return(sample.size(), sample.interval(), sample.halves());
  CallsiteState& state = Touch(sample.row());
  state.totals.freed -= estimate;
  state.live_certain.Add(sample, 1);
  TotalsOf(sample.thread()).freed -= estimate;
  shapes_.Free(sample.row(), end, estimate, -1);
  AddLive(estimate, now_ns);
}

double LiveHeap::PossibleRest(const HeapDump& dump) const {
  const auto counted = static_cast<double>(dump.exact_alloc_bytes);
  const double rest = counted - peak_estimator_.certain_allocated();
  // Without samples either, no call is no call. With some, they were not counted.
  const bool is_counted = dump.exact_alloc_calls > 0 || callsites_.empty();
  return is_counted && rest >= 0 ? rest : std::numeric_limits<double>::infinity();
}

double LiveHeap::LiveBytes(const HeapDump& counted) const {
  return std::clamp(live_.bytes, 0.0,
                    peak_estimator_.certain_live() + PossibleRest(counted));
}

// The two halves may tell different moments: then the maximum could be at either, and the
// distance to the highest sum shows how much that matters. That sum, which is biased
// upwards, is at least the one at the true maximum, and whatever the variance was there,
// it was not above the widest: so this upper limit is safe.
BoundedBytes LiveHeap::PeakTotal(const HeapDump& dump) const {
  const uint64_t interval = dump.sampling_interval;
  Estimate value = peak_estimator_.Value();
  if (value.bytes < live_.bytes)
    value = live_;
  value.bytes = std::clamp(value.bytes, peak_estimator_.certain_peak(),
                           std::max(peak_.bytes, peak_estimator_.certain_peak()));
  const double distance = peak_.bytes - value.bytes;
  value.bytes_variance += std::min(value.bytes_variance, distance * distance);
  const double possible = peak_estimator_.certain_peak() + PossibleRest(dump);
  BoundedBytes total;
  total.bytes = std::min(value.bytes, possible);
  total.low =
      std::clamp(LowerLimit(value, interval),
                 std::min(peak_estimator_.certain_peak(), total.bytes), total.bytes);
  Estimate highest = peak_;
  highest.bytes_variance = widest_;
  total.high =
      std::max(total.bytes,
               std::min(UpperLimit(highest, interval) + dump.unsampled_bytes, possible));
  return total;
}

void LiveHeap::Snapshot(HeapDump* dump) const {
  dump->callsites.clear();
  dump->peak.clear();
  dump->callsites.reserve(callsites_.size());
  dump->peak.reserve(callsites_.size());
  dump->peak_ns = peak_ns_;
  dump->peak_total = PeakTotal(*dump);
  dump->certain_live = peak_estimator_.certain_live();
  dump->possible_live = dump->certain_live + PossibleRest(*dump);
  dump->threads = threads_;
  const double sampled = peak_.bytes - peak_certain_;
  const double scale =
      sampled > 0 ? std::max(0.0, dump->peak_total.bytes - peak_certain_) / sampled : 1;
  for (const uint32_t row : OrderedRows()) {
    const CallsiteState& state = callsites_[row];
    dump->callsites.emplace(state.callsite, state.totals);
    const bool has_changed = state.peak_generation == peak_generation_;
    const Estimate at_peak = has_changed ? state.peak : state.totals.live();
    const Certain& certain = has_changed ? state.peak_certain : state.live_certain;
    if (at_peak.bytes > 0)
      dump->peak.emplace(state.callsite, certain.ScaleRest(at_peak, scale));
  }
}

uint64_t LiveHeap::SnapshotShapes(uint64_t now_ns, HeapDump* dump) const {
  BlockShapes live;
  samples_.ForEach([&](uint64_t /*address*/, const Sample& sample) {
    live.AddLive({sample.row(), sample.thread()}, sample.size(), sample.AgeNs(now_ns),
                 EstimateOfSample(sample.size(), sample.interval()));
  });
  dump->shapes.clear();
  shapes_.AppendTo(&dump->shapes);
  live.AppendTo(&dump->shapes);
  for (ShapeRow& shape : dump->shapes)
    shape.callsite = callsites_[shape.callsite].callsite;
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
  samples_.ForEach([&](uint64_t address, const Sample& sample) {
    if (sample.size() < least)
      return;
    blocks.push_back({address, sample.size(), callsites_[sample.row()].callsite});
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
