#include "cli/inspect/restored_profile.h"

#include <algorithm>
#include <limits>
#include <map>
#include <span>
#include <string>

#include "profile/block_shapes.h"
#include "profile/estimate.h"
#include "profile/limits.h"
#include "query/flame_tree.h"

namespace heapprofd {
namespace {

double Square(double error) {
  return error * error;
}

uint64_t Unsigned(int64_t ts) {
  return static_cast<uint64_t>(std::max<int64_t>(0, ts));
}

// Of the profiling: where its first dump begins.
uint64_t StartOf(const ImportedTrace& trace, std::span<const uint32_t> dumps) {
  int64_t start = std::numeric_limits<int64_t>::max();
  for (const uint32_t dump : dumps)
    start = std::min(start, trace.dumps[dump].start_ts.value_or(start));
  return start == std::numeric_limits<int64_t>::max() ? 0 : Unsigned(start);
}

BoundedBytes PeakOf(const ImportedDump& dump) {
  const auto bytes = static_cast<double>(dump.peak_bytes);
  return {.bytes = bytes,
          .low = std::min(bytes,
                          static_cast<double>(dump.peak_low.value_or(dump.peak_bytes))),
          .high = std::max(
              bytes, static_cast<double>(dump.peak_high.value_or(dump.peak_bytes)))};
}

int32_t KnownPid(int64_t pid) {
  return static_cast<int32_t>(
      std::clamp<int64_t>(pid, 0, std::numeric_limits<int32_t>::max()));
}

}  // namespace

RestoredProfile::RestoredProfile(const ImportedTrace& trace,
                                 const std::vector<bool>& is_allocator,
                                 HeapSums& sums,
                                 uint32_t upid)
    : trace_(trace), sums_(sums), upid_(upid), code_(trace, is_allocator, &profile_) {
  AddProcess();
  AddMemory();
  AddEnd();
}

void RestoredProfile::AddProcess() {
  const ImportedProcess& process = trace_.processes[upid_];
  profile_.process.pid = KnownPid(process.pid);
  if (process.parent_upid < trace_.processes.size())
    profile_.process.parent_pid = KnownPid(trace_.processes[process.parent_upid].pid);
  const StringId name = process.name != kNoId ? process.name : process.cmdline;
  if (name != kNoId)
    profile_.process.cmdline = {std::string(trace_.Text(name))};
  profile_.process.start_ns = StartOf(trace_, sums_.processes().DumpsOf(upid_));
  if (const ForkedChildren* children = sums_.processes().ChildrenOf(upid_))
    profile_.forked = *children;
}

// The last figures of the kernel.
void RestoredProfile::AddMemory() {
  std::map<std::string_view, const ProcessCounter*> latest;
  for (const uint32_t row : sums_.processes().CountersOf(upid_)) {
    const ProcessCounter& counter = trace_.counters[row];
    const ProcessCounter*& known = latest[trace_.Text(counter.name)];
    if (known == nullptr || known->ts <= counter.ts)
      known = &counter;
  }
  const auto kib = [&](const char* name) {
    const auto found = latest.find(name);
    return found == latest.end() ? 0 : Unsigned(found->second->value) / 1024;
  };
  profile_.memory.rss_kib = kib("mem.rss");
  profile_.memory.swap_kib = kib("mem.swap");
  profile_.memory.anonymous_kib = kib("mem.rss.anon");
}

void RestoredProfile::AddEnd() {
  if (const uint32_t row = trace_.processes[upid_].end; row != kNoId)
    end_ = &trace_.process_ends[row];
  if (end_ == nullptr)
    return;
  profile_.process.executable = end_->executable;
  profile_.hooks_malloc = end_->hooks_malloc;
  profile_.has_own_malloc = end_->has_own_malloc;
  profile_.unrecorded_heaps = end_->unrecorded_heaps;
  profile_.late_files = end_->late_files;
  profile_.memory.rss_kib = end_->rss_kib;
  profile_.memory.anonymous_kib = end_->anonymous_kib;
  profile_.memory.swap_kib = end_->swap_kib;
}

void RestoredProfile::AddValues(uint32_t dump, HeapDump* heap) {
  std::vector<std::pair<CallsiteId, FlameValues>> rows;
  for (const auto& [callsite, values] : sums_.At(dump))
    rows.emplace_back(code_.CallsiteOf(callsite), values);
  std::sort(rows.begin(), rows.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  const auto told = [](bool is_told, int64_t value) {
    return is_told ? static_cast<double>(value) : 0;
  };
  for (const auto& [callsite, value] : rows) {
    CallsiteTotals totals;
    if (trace_.dumps[dump].is_peak) {
      heap->peak.emplace(callsite, {.bytes = static_cast<double>(value.size),
                                    .count = static_cast<double>(value.count)});
    } else {
      totals.allocated = {.bytes = told(heap->told.alloc_size, value.alloc_size),
                          .count = told(heap->told.alloc_count, value.alloc_count)};
      totals.freed =
          totals.allocated - Estimate{.bytes = told(heap->told.live_size, value.size),
                                      .count = told(heap->told.live_count, value.count)};
    }
    heap->callsites.emplace(callsite, totals);
  }
}

// In the place of what a dump of the maximum says of the end.
void RestoredProfile::AddCumulative(uint32_t dump, HeapDump* heap) {
  const CumulativeTable& rows = trace_.cumulative;
  const auto [first, last] = rows.RowsOf(dump);
  if (first == last)
    return;
  std::map<CallsiteId, CallsiteTotals> sums;
  for (size_t row = first; row < last; ++row) {
    const double bytes_variance = Square(rows.alloc_size_error[row]);
    const double count_variance = Square(rows.alloc_count_error[row]);
    CallsiteTotals& totals = sums[code_.CallsiteOf(rows.callsite[row])];
    totals.allocated += {.bytes = static_cast<double>(rows.alloc_size[row]),
                         .count = static_cast<double>(rows.alloc_count[row]),
                         .bytes_variance = bytes_variance,
                         .count_variance = count_variance};
    totals.freed +=
        {.bytes = static_cast<double>(rows.free_size[row]),
         .count = static_cast<double>(rows.free_count[row]),
         .bytes_variance = bytes_variance - Square(rows.live_size_error[row]),
         .count_variance = count_variance - Square(rows.live_count_error[row])};
  }
  heap->callsites = CallsiteRows<CallsiteTotals>();
  for (const auto& [callsite, totals] : sums)
    heap->callsites.emplace(callsite, totals);
}

void RestoredProfile::AddErrors(const ImportedDump& dump, HeapDump* heap) {
  const EstimateTable& estimates = trace_.estimates;
  std::map<CallsiteId, Estimate> peaks;
  std::map<CallsiteId, Estimate> idle;
  for (size_t i = 0; i < dump.estimate_count; ++i) {
    const size_t row = dump.first_estimate + i;
    const CallsiteId callsite = code_.CallsiteOf(estimates.callsite[row]);
    CallsiteTotals& totals = heap->callsites[callsite];
    totals.allocated.bytes_variance += Square(estimates.allocated_bytes_error[row]);
    totals.allocated.count_variance += Square(estimates.alloc_count_error[row]);
    // So that the difference has the variance of what is live.
    totals.freed.bytes_variance += Square(estimates.allocated_bytes_error[row]) -
                                   Square(estimates.live_bytes_error[row]);
    totals.freed.count_variance += Square(estimates.alloc_count_error[row]) -
                                   Square(estimates.live_count_error[row]);
    if (estimates.peak_bytes[row] > 0)
      peaks[callsite] += {.bytes = static_cast<double>(estimates.peak_bytes[row]),
                          .count = static_cast<double>(estimates.peak_count[row])};
    if (estimates.idle_bytes[row] > 0)
      idle[callsite] += {.bytes = static_cast<double>(estimates.idle_bytes[row])};
  }
  for (const auto& [callsite, estimate] : idle)
    heap->idle.callsites.emplace(callsite, estimate);
  for (const auto& [callsite, peak] : peaks)
    heap->peak.emplace(callsite, peak);
}

// Where the file tells at what interval samples were taken, and no errors. Perfetto's
// heapprofd counts samples, not blocks: of those nothing is known but that.
void RestoredProfile::EstimateErrors(HeapDump* heap) const {
  const bool counts_blocks = profile_.process.pid == 0;
  const auto with_errors = [&](const Estimate& sums) {
    Estimate estimate = EstimateOfSums(sums.bytes, counts_blocks ? sums.count : 0,
                                       heap->sampling_interval);
    estimate.count = sums.count;
    return estimate;
  };
  CallsiteRows<CallsiteTotals> rows;
  rows.reserve(heap->callsites.size());
  for (const auto& [callsite, totals] : heap->callsites) {
    const Estimate allocated = with_errors(totals.allocated);
    rows.emplace(callsite, {.allocated = allocated,
                            .freed = allocated - with_errors(totals.live())});
  }
  heap->callsites = std::move(rows);
}

void RestoredProfile::AddShapes(uint32_t dump, HeapDump* heap) {
  const ShapeTable& shapes = trace_.shapes;
  const std::span<const uint32_t> dumps = shapes.dump.span();
  const auto [first, last] = std::equal_range(dumps.begin(), dumps.end(), dump);
  for (auto row = static_cast<size_t>(first - dumps.begin());
       row < static_cast<size_t>(last - dumps.begin()); ++row)
    heap->shapes.push_back(
        {.callsite = code_.CallsiteOf(shapes.callsite[row]),
         .kind = static_cast<ShapeKind>(shapes.kind[row]),
         .log2 = shapes.log2[row],
         .estimate = {
             .bytes = static_cast<double>(shapes.size[row]),
             .count = static_cast<double>(shapes.count[row]),
             .bytes_variance = shapes.size_error[row] * shapes.size_error[row],
             .count_variance = shapes.count_error[row] * shapes.count_error[row]}});
  SortShapes(&heap->shapes);
}

// A dump of the peak gives what was live then, and of its end what stands beside it.
ToldFigures RestoredProfile::ToldAtEnd(uint32_t dump) const {
  const ImportedDump& row = trace_.dumps[dump];
  const auto [first, last] = trace_.cumulative.RowsOf(dump);
  return row.is_peak && first == last ? ToldFigures::None() : row.told;
}

HeapDump RestoredProfile::Restore(uint32_t dump) {
  const ImportedDump& row = trace_.dumps[dump];
  HeapDump heap;
  static_cast<HeapCounts&>(heap) = static_cast<const HeapCounts&>(row);
  heap.heap_name = std::string(trace_.Text(row.heap_name));
  heap.sampling_interval = row.sampling_interval;
  heap.original_sampling_interval = row.original_sampling_interval;
  heap.start_ns = Unsigned(row.start_ts.value_or(row.ts));
  heap.end_ns = Unsigned(row.ts);
  heap.told = ToldAtEnd(dump);
  heap.peak_ns = Unsigned(row.peak_ts.value_or(0));
  heap.peak_total = PeakOf(row);
  heap.idle.was_asked_for = row.idle_unseen.has_value();
  heap.idle.since_ns = Unsigned(row.idle_ts.value_or(0));
  heap.idle.until_ns = Unsigned(row.idle_until_ts.value_or(0));
  heap.idle.unseen_bytes = static_cast<double>(row.idle_unseen.value_or(0));
  if (row.quality != kNoId && heap.heap_name == kMallocHeapName)
    heap.unsampled_bytes =
        static_cast<double>(trace_.qualities[row.quality].unsampled_bytes);
  AddValues(dump, &heap);
  const bool has_errors = row.live_low.has_value() || row.estimate_count > 0;
  const bool tells_end = !row.is_peak || heap.told.live();
  const bool is_sampled = row.sampling_interval > 1 && !has_errors && tells_end;
  if (row.is_peak)
    AddCumulative(dump, &heap);
  else if (is_sampled)
    EstimateErrors(&heap);
  else
    AddErrors(row, &heap);
  AddShapes(dump, &heap);
  double live = 0;
  for (const auto& [callsite, totals] : heap.callsites)
    live += totals.live().bytes;
  // Where nothing is known of errors, there are no limits to be shown.
  if (!is_sampled) {
    heap.certain_live = row.live_low ? static_cast<double>(*row.live_low) : live;
    heap.possible_live = row.live_high ? static_cast<double>(*row.live_high) : live;
  }
  if (heap.peak_total.bytes > 0 && !row.is_peak) {  // but for the rounding of its rows
    heap.peak_total.bytes = std::max(heap.peak_total.bytes, LiveTotal(heap).bytes);
    heap.peak_total.high = std::max(heap.peak_total.high, heap.peak_total.bytes);
  }
  return heap;
}

void RestoredProfile::ForgetHeaps() {
  profile_.heaps.clear();
  profile_.memory.requested = 0;
}

void RestoredProfile::AddHeap(uint32_t dump) {
  const ImportedDump& row = trace_.dumps[dump];
  if (end_ == nullptr || end_->has_heaps)
    profile_.heaps.push_back(Restore(dump));
  if (end_ != nullptr)
    profile_.memory.requested = end_->requested;
  else
    profile_.memory.requested += LiveTotal(profile_.heaps.back()).bytes;
  profile_.from_startup = row.from_startup || profile_.process.pid == 0;
  profile_.hit_guardrail = row.hit_guardrail;
  if (row.client_error == static_cast<uint32_t>(ClientFault::kHitTimeout))
    profile_.client_fault = ClientFault::kHitTimeout;
  if (row.quality != kNoId) {
    profile_.quality = trace_.qualities[row.quality];
    tells_quality_ = true;
  }
  if (row.reason != kNoId)
    profile_.reason = std::string(trace_.Text(row.reason));
  if (row.allocator.name == kNoId)
    return;
  profile_.memory.allocator = std::string(trace_.Text(row.allocator.name));
  profile_.memory.allocator_system = row.allocator.system;
  profile_.memory.allocator_in_use = row.allocator.in_use;
  profile_.memory.allocator_free = row.allocator.free;
}

}  // namespace heapprofd
