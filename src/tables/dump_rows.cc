#include "tables/dump_rows.h"

#include <algorithm>
#include <map>
#include <utility>

namespace heapprofd {
namespace {

constexpr size_t kMaxDumps = size_t{1} << 22;

}  // namespace

uint32_t DumpRows::Begin(const ImportedDump& dump) {
  if (trace_->dumps.size() < kMaxDumps) {  // what follows is added to the last one
    trace_->dumps.push_back(dump);
    ImportedDump& added = trace_->dumps.back();
    added.first_allocation = added.first_estimate = 0;
    added.allocation_count = added.estimate_count = 0;
  }
  const auto id = static_cast<uint32_t>(trace_->dumps.size() - 1);
  GoOn(id);
  return id;
}

void DumpRows::GoOn(uint32_t dump) {
  rows_dump_ = dump;
  ImportedDump& rows = trace_->dumps[dump];
  if (rows.allocation_count == 0)
    rows.first_allocation = static_cast<uint32_t>(trace_->allocations.row_count());
  if (rows.estimate_count == 0)
    rows.first_estimate = static_cast<uint32_t>(trace_->estimates.row_count());
}

void DumpRows::AddAllocation(uint32_t callsite, int64_t count, int64_t size) {
  AllocationTable& rows = trace_->allocations;
  if ((count == 0 && size == 0) || rows.row_count() >= kMostTableRows)
    return;
  rows.dump.push_back(rows_dump_);
  rows.callsite.push_back(callsite);
  rows.count.push_back(count);
  rows.size.push_back(size);
  ++trace_->dumps[rows_dump_].allocation_count;
}

void DumpRows::AddEstimate(uint32_t callsite, const CallsiteEstimate& estimate) {
  EstimateTable& rows = trace_->estimates;
  if (!needs_estimates_ || rows.row_count() >= kMostTableRows)
    return;
  rows.dump.push_back(rows_dump_);
  rows.callsite.push_back(callsite);
  rows.live_bytes_error.push_back(estimate.live_bytes_error);
  rows.live_count_error.push_back(estimate.live_count_error);
  rows.allocated_bytes_error.push_back(estimate.allocated_bytes_error);
  rows.alloc_count_error.push_back(estimate.alloc_count_error);
  rows.peak_bytes.push_back(estimate.peak_bytes);
  rows.peak_count.push_back(estimate.peak_count);
  rows.idle_bytes.push_back(estimate.idle_bytes);
  ++trace_->dumps[rows_dump_].estimate_count;
}

void DumpRows::AddCumulative(uint32_t callsite,
                             const CallsiteTotalsAtEnd& totals,
                             const CallsiteEstimate& estimate) {
  CumulativeTable& rows = trace_->cumulative;
  if (rows.row_count() >= kMostTableRows)
    return;
  rows.dump.push_back(rows_dump_);
  rows.callsite.push_back(callsite);
  rows.alloc_size.push_back(totals.alloc_size);
  rows.alloc_count.push_back(totals.alloc_count);
  rows.free_size.push_back(totals.free_size);
  rows.free_count.push_back(totals.free_count);
  rows.live_size_error.push_back(estimate.live_bytes_error);
  rows.live_count_error.push_back(estimate.live_count_error);
  rows.alloc_size_error.push_back(estimate.allocated_bytes_error);
  rows.alloc_count_error.push_back(estimate.alloc_count_error);
}

// The estimates are the state at the dump already.
void DumpRows::CopyEstimates(const EstimateTable& from, const ImportedDump& dump) {
  for (size_t i = 0; i < dump.estimate_count; ++i) {
    const size_t row = dump.first_estimate + i;
    AddEstimate(from.callsite[row],
                {.live_bytes_error = from.live_bytes_error[row],
                 .live_count_error = from.live_count_error[row],
                 .allocated_bytes_error = from.allocated_bytes_error[row],
                 .alloc_count_error = from.alloc_count_error[row],
                 .peak_bytes = from.peak_bytes[row],
                 .peak_count = from.peak_count[row],
                 .idle_bytes = from.idle_bytes[row]});
  }
}

void DumpRows::KeepLast() {
  // Callsite and whether freed: of a dump there is a row for each.
  using Sums = std::map<std::pair<uint32_t, bool>, std::pair<int64_t, int64_t>>;

  struct Heap {
    uint32_t last = 0;
    Sums sums;  // count and size
  };

  std::map<std::pair<uint32_t, StringId>, Heap> heaps;
  const AllocationTable allocations = std::exchange(trace_->allocations, {});
  const EstimateTable estimates = std::exchange(trace_->estimates, {});
  const std::vector<ImportedDump> dumps = std::exchange(trace_->dumps, {});
  const std::vector<Quality> qualities = std::exchange(trace_->qualities, {});
  const std::vector<ThreadTotals> threads = std::exchange(trace_->thread_totals, {});
  for (uint32_t id = 0; id < dumps.size(); ++id) {
    Heap& heap = heaps[{dumps[id].upid, dumps[id].heap_name}];
    heap.last = id;
    for (size_t i = 0; i < dumps[id].allocation_count; ++i) {
      const size_t row = dumps[id].first_allocation + i;
      const bool is_freed = allocations.count[row] < 0 || allocations.size[row] < 0;
      auto& [count, size] = heap.sums[{allocations.callsite[row], is_freed}];
      count += allocations.count[row];
      size += allocations.size[row];
    }
  }
  for (const auto& [name, heap] : heaps) {
    const ImportedDump& last = dumps[heap.last];
    ImportedDump& dump = trace_->dumps[Begin(last)];
    if (last.quality < qualities.size()) {
      dump.quality = static_cast<uint32_t>(trace_->qualities.size());
      trace_->qualities.push_back(qualities[last.quality]);
    }
    for (const auto& [row, sum] : heap.sums)
      AddAllocation(row.first, sum.first, sum.second);
    CopyEstimates(estimates, last);
    const auto [begin, end] =
        std::equal_range(threads.begin(), threads.end(), ThreadTotals{.dump = heap.last},
                         [](const auto& a, const auto& b) { return a.dump < b.dump; });
    for (auto thread = begin; thread != end; ++thread) {
      trace_->thread_totals.push_back(*thread);
      trace_->thread_totals.back().dump = static_cast<uint32_t>(trace_->dumps.size() - 1);
    }
  }
  trace_->cumulative = {};
  trace_->shapes = {};
  trace_->live_blocks = {};
  trace_->counters.clear();
}

void DumpRows::AddLiveBlock(uint32_t callsite, uint64_t address, uint64_t size) {
  LiveBlockTable& rows = trace_->live_blocks;
  if (!needs_estimates_ || rows.row_count() >= kMostTableRows)
    return;
  rows.dump.push_back(rows_dump_);
  rows.callsite.push_back(callsite);
  rows.address.push_back(address);
  rows.size.push_back(size);
}

void DumpRows::AddShape(uint32_t callsite, const CallsiteShape& shape) {
  ShapeTable& rows = trace_->shapes;
  if (!needs_estimates_ || rows.row_count() >= kMostTableRows)
    return;
  rows.dump.push_back(rows_dump_);
  rows.callsite.push_back(callsite);
  rows.kind.push_back(static_cast<uint8_t>(shape.kind));
  rows.log2.push_back(shape.log2);
  rows.count.push_back(shape.count);
  rows.size.push_back(shape.size);
  rows.count_error.push_back(shape.count_error);
  rows.size_error.push_back(shape.size_error);
  rows.utid.push_back(shape.utid);
}

}  // namespace heapprofd
