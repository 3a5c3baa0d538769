#include "trace/dump_messages.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <protozero/pbf_writer.hpp>

#include "profile/estimate.h"
#include "profile/figures.h"
#include "profile/limits.h"
#include "trace/fields.h"
#include "trace/limits.h"

namespace heapprofd {
namespace {

using protozero::pbf_writer;

uint64_t Rounded(double value) {
  return static_cast<uint64_t>(RoundedFigure(value));
}

void AddError(pbf_writer& writer, uint32_t field, double variance) {
  if (variance > 0)
    writer.add_double(field, std::sqrt(variance));
}

// `fields`: of the errors of live bytes and count, and of allocated bytes and count.
void AddErrors(pbf_writer& writer,
               const std::array<uint32_t, 4>& fields,
               const CallsiteTotals& totals) {
  const Estimate live = totals.live();
  AddError(writer, fields[0], live.bytes_variance);
  AddError(writer, fields[1], live.count_variance);
  AddError(writer, fields[2], totals.allocated.bytes_variance);
  AddError(writer, fields[3], totals.allocated.count_variance);
}

void AddStats(pbf_writer& header, const Quality& quality) {
  pbf_writer stats(header, field::kDumpStats);
  stats.add_uint64(field::kStatsUnwindingErrors, quality.unwind_errors);
  stats.add_uint64(field::kStatsHeapSamples, quality.samples);
  stats.add_uint64(field::kStatsMapReparses, quality.map_reparses);
  {
    pbf_writer times(stats, field::kStatsUnwindingTimes);
    for (size_t i = 0; i < kUnwindTimeBuckets; ++i) {
      pbf_writer bucket(times, field::kHistogramBuckets);
      if (i + 1 < kUnwindTimeBuckets)
        bucket.add_uint64(field::kBucketUpperLimit, uint64_t{1} << i);
      else
        bucket.add_bool(field::kBucketIsLast, true);
      bucket.add_uint64(field::kBucketCount, quality.unwind_times[i]);
    }
  }
  stats.add_uint64(field::kStatsUnwindingTime, quality.unwind_time_us);
}

void AddQuality(pbf_writer& header, const Quality& quality) {
  pbf_writer counters(header, field::kDumpQuality);
  for (const Figure& figure : kFigures)
    counters.add_uint64(figure.field, quality.*figure.value);
}

void AddLimits(pbf_writer& header, const HeapDump& dump) {
  const BoundedBytes live = LiveTotal(dump);
  header.add_uint64(field::kDumpLiveLow, Rounded(live.low));
  header.add_uint64(field::kDumpLiveHigh, Rounded(live.high));
  header.add_uint64(field::kDumpPeakLow, Rounded(dump.peak_total.low));
  header.add_uint64(field::kDumpPeakHigh, Rounded(dump.peak_total.high));
}

void AddAllocator(pbf_writer& header, const MemoryContext& memory) {
  if (memory.allocator.empty())
    return;
  pbf_writer allocator(header, field::kDumpAllocator);
  allocator.add_string(field::kAllocatorName, memory.allocator);
  allocator.add_uint64(field::kAllocatorSystem, memory.allocator_system);
  allocator.add_uint64(field::kAllocatorInUse, memory.allocator_in_use);
  allocator.add_uint64(field::kAllocatorFree, memory.allocator_free);
}

}  // namespace

std::string DumpHeader(const TargetProfile& profile,
                       const HeapDump& dump,
                       const DumpInterval& interval,
                       const DumpFlags& flags) {
  const Quality& quality = profile.quality;
  std::string message;
  pbf_writer header(message);
  header.add_uint64(field::kDumpPid, static_cast<uint64_t>(profile.process.pid));
  header.add_bool(field::kDumpFromStartup, profile.from_startup);
  if (profile.rejected_concurrent)
    header.add_bool(field::kDumpRejectedConcurrent, true);
  AddStats(header, quality);
  header.add_bool(field::kDumpDisconnected, flags.disconnected);
  header.add_bool(field::kDumpBufferOverran, flags.buffer_overran);
  header.add_bool(field::kDumpBufferCorrupted, flags.buffer_corrupted);
  header.add_uint64(field::kDumpTimestamp, interval.end_ns);
  header.add_bool(field::kDumpHitGuardrail, profile.hit_guardrail);
  header.add_string(field::kDumpHeapName, dump.heap_name);
  header.add_uint64(field::kDumpSamplingInterval, dump.sampling_interval);
  // Readers ignore peaks when this is 0.
  header.add_uint64(field::kDumpOriginalInterval,
                    std::max<uint64_t>(1, dump.original_sampling_interval));
  if (profile.client_fault != ClientFault::kNone)
    header.add_enum(field::kDumpClientError, static_cast<int32_t>(profile.client_fault));
  header.add_uint64(field::kDumpStartTimestamp, interval.start_ns);
  AddQuality(header, quality);
  header.add_uint64(field::kDumpExactAllocCalls, dump.exact_alloc_calls);
  header.add_uint64(field::kDumpExactAllocBytes, dump.exact_alloc_bytes);
  header.add_uint64(field::kDumpPeakBytes, Rounded(dump.peak_total.bytes));
  header.add_uint64(field::kDumpPeakTimestamp, dump.peak_ns);
  AddLimits(header, dump);
  header.add_uint64(field::kDumpProfilingStart, profile.process.start_ns);
  AddAllocator(header, profile.memory);
  if (!flags.label.empty())
    header.add_string(field::kDumpLabel, std::string(BoundedText(flags.label)));
  if (!profile.reason.empty())
    header.add_string(field::kDumpReason, std::string(BoundedText(profile.reason)));
  return message;
}

void AppendSample(std::string& process_dump,
                  uint64_t callstack_iid,
                  const CallsiteTotals& totals,
                  const Estimate* peak,
                  WrittenTotals& written) {
  // Rounding may not make a value fall, nor let more be freed than was allocated.
  written.allocated = std::max(written.allocated, Rounded(totals.allocated.bytes));
  written.alloc_count = std::max(written.alloc_count, Rounded(totals.allocated.count));
  written.freed =
      std::min(written.allocated, std::max(written.freed, Rounded(totals.freed.bytes)));
  written.free_count = std::min(
      written.alloc_count, std::max(written.free_count, Rounded(totals.freed.count)));
  pbf_writer writer(process_dump);
  pbf_writer sample(writer, field::kDumpSamples);
  sample.add_uint64(field::kSampleCallstack, callstack_iid);
  sample.add_uint64(field::kSampleAllocated, written.allocated);
  sample.add_uint64(field::kSampleFreed, written.freed);
  sample.add_uint64(field::kSampleAllocCount, written.alloc_count);
  sample.add_uint64(field::kSampleFreeCount, written.free_count);
  AddErrors(sample,
            {field::kSampleLiveBytesError, field::kSampleLiveCountError,
             field::kSampleAllocatedBytesError, field::kSampleAllocCountError},
            totals);
  if (peak != nullptr) {
    sample.add_uint64(field::kSamplePeakBytes, Rounded(peak->bytes));
    sample.add_uint64(field::kSamplePeakCount, Rounded(peak->count));
  }
}

void AppendPeakSample(std::string& process_dump,
                      uint64_t callstack_iid,
                      const Estimate& peak,
                      const CallsiteTotals& totals) {
  pbf_writer writer(process_dump);
  pbf_writer sample(writer, field::kDumpSamples);
  sample.add_uint64(field::kSampleCallstack, callstack_iid);
  sample.add_uint64(field::kSampleMax, Rounded(peak.bytes));
  sample.add_uint64(field::kSampleMaxCount, Rounded(peak.count));
  sample.add_uint64(field::kSampleCumulativeAllocated, Rounded(totals.allocated.bytes));
  sample.add_uint64(field::kSampleCumulativeFreed, Rounded(totals.freed.bytes));
  sample.add_uint64(field::kSampleCumulativeAllocCount, Rounded(totals.allocated.count));
  sample.add_uint64(field::kSampleCumulativeFreeCount, Rounded(totals.freed.count));
}

void AppendThread(std::string& process_dump,
                  const ThreadDescription& thread,
                  const CallsiteTotals& totals) {
  const uint64_t allocated = Rounded(totals.allocated.bytes);
  const uint64_t alloc_count = Rounded(totals.allocated.count);
  pbf_writer writer(process_dump);
  pbf_writer message(writer, field::kDumpThreads);
  message.add_uint64(field::kThreadId, thread.tid);
  if (!thread.name.empty())
    message.add_string(field::kThreadName, thread.name);
  message.add_uint64(field::kThreadAllocated, allocated);
  message.add_uint64(field::kThreadFreed,
                     std::min(allocated, Rounded(totals.freed.bytes)));
  message.add_uint64(field::kThreadAllocCount, alloc_count);
  message.add_uint64(field::kThreadFreeCount,
                     std::min(alloc_count, Rounded(totals.freed.count)));
  AddErrors(message,
            {field::kThreadLiveBytesError, field::kThreadLiveCountError,
             field::kThreadAllocatedBytesError, field::kThreadAllocCountError},
            totals);
}

void AppendShape(std::string& process_dump, uint64_t callstack_iid, const ShapeRow& row) {
  pbf_writer writer(process_dump);
  pbf_writer message(writer, field::kDumpShapes);
  message.add_uint64(field::kShapeCallstack, callstack_iid);
  message.add_enum(field::kShapeKind, static_cast<int32_t>(row.kind));
  message.add_uint32(field::kShapeLog2, row.log2);
  message.add_uint64(field::kShapeBytes, Rounded(row.estimate.bytes));
  message.add_uint64(field::kShapeCount, Rounded(row.estimate.count));
  AddError(message, field::kShapeBytesError, row.estimate.bytes_variance);
  AddError(message, field::kShapeCountError, row.estimate.count_variance);
}

}  // namespace heapprofd
