#include "trace/dump_messages.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <protozero/pbf_writer.hpp>

#include "profile/estimate.h"
#include "profile/figures.h"
#include "profile/limits.h"
#include "trace/fields.h"
#include "trace/limits.h"

namespace heapprofd {
namespace {

using AllocatorField = field::ProfilePacket::AllocatorStats;
using BlocksField = field::ProfilePacket::LiveBlocks;
using ShapeField = field::ProfilePacket::BlockShape;
using SampleField = field::ProfilePacket::HeapSample;
using HistogramField = field::ProfilePacket::Histogram;
using BucketField = field::ProfilePacket::Histogram::Bucket;
using DumpField = field::ProfilePacket::ProcessHeapSamples;
using StatsField = field::ProfilePacket::ProcessStats;
using ThreadField = field::ProfilePacket::ThreadTotals;

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

void AddSampleErrors(pbf_writer& sample, const CallsiteTotals& totals) {
  AddErrors(sample,
            {SampleField::kLiveBytesError, SampleField::kLiveCountError,
             SampleField::kAllocatedBytesError, SampleField::kAllocCountError},
            totals);
}

void AddIdle(pbf_writer& sample, const SampleExtras& extras) {
  if (extras.idle != nullptr)
    sample.add_uint64(SampleField::kSelfIdle, Rounded(extras.idle->bytes));
}

// Where it is not known what is idle, all may be.
void AddIdleTimes(pbf_writer& header, const HeapDump& dump) {
  const IdleBlocks& idle = dump.idle;
  if (!idle.was_asked_for)
    return;
  if (idle.since_ns != 0) {
    header.add_uint64(DumpField::kIdleSince, idle.since_ns);
    header.add_uint64(DumpField::kIdleUntil, idle.until_ns);
  }
  header.add_uint64(
      DumpField::kIdleUnseen,
      Rounded(idle.since_ns != 0 ? idle.unseen_bytes : LiveTotal(dump).bytes));
}

void AddStats(pbf_writer& header, const Quality& quality) {
  pbf_writer stats(header, DumpField::kStats);
  stats.add_uint64(StatsField::kUnwindingErrors, quality.unwind_errors);
  stats.add_uint64(StatsField::kHeapSamples, quality.samples);
  stats.add_uint64(StatsField::kMapReparses, quality.map_reparses);
  {
    pbf_writer times(stats, StatsField::kUnwindingTimeUs);
    for (size_t i = 0; i < kUnwindTimeBuckets; ++i) {
      pbf_writer bucket(times, HistogramField::kBuckets);
      if (i + 1 < kUnwindTimeBuckets)
        bucket.add_uint64(BucketField::kUpperLimit, uint64_t{1} << i);
      else
        bucket.add_bool(BucketField::kMaxBucket, true);
      bucket.add_uint64(BucketField::kCount, quality.unwind_times[i]);
    }
  }
  stats.add_uint64(StatsField::kTotalUnwindingTimeUs, quality.unwind_time_us);
}

void AddQuality(pbf_writer& header, const Quality& quality) {
  pbf_writer counters(header, DumpField::kQuality);
  for (const Figure& figure : kFigures)
    counters.add_uint64(figure.field, quality.*figure.value);
}

void AddLimits(pbf_writer& header, const HeapDump& dump) {
  const BoundedBytes live = LiveTotal(dump);
  header.add_uint64(DumpField::kLiveLow, Rounded(live.low));
  header.add_uint64(DumpField::kLiveHigh, Rounded(live.high));
  header.add_uint64(DumpField::kPeakLow, Rounded(dump.peak_total.low));
  header.add_uint64(DumpField::kPeakHigh, Rounded(dump.peak_total.high));
}

void AddAllocator(pbf_writer& header, const MemoryContext& memory) {
  if (memory.allocator.empty())
    return;
  pbf_writer allocator(header, DumpField::kAllocator);
  allocator.add_string(AllocatorField::kAllocator, memory.allocator);
  allocator.add_uint64(AllocatorField::kSystem, memory.allocator_system);
  allocator.add_uint64(AllocatorField::kInUse, memory.allocator_in_use);
  allocator.add_uint64(AllocatorField::kFree, memory.allocator_free);
}

}  // namespace

std::string DumpHeader(const TargetProfile& profile,
                       const HeapDump& dump,
                       const DumpInterval& interval,
                       const DumpFlags& flags) {
  const Quality& quality = profile.quality;
  std::string message;
  pbf_writer header(message);
  header.add_uint64(DumpField::kPid, static_cast<uint64_t>(profile.process.pid));
  header.add_bool(DumpField::kFromStartup, profile.from_startup);
  if (profile.rejected_concurrent)
    header.add_bool(DumpField::kRejectedConcurrent, true);
  AddStats(header, quality);
  header.add_bool(DumpField::kDisconnected, flags.disconnected);
  header.add_bool(DumpField::kBufferOverran, flags.buffer_overran);
  header.add_bool(DumpField::kBufferCorrupted, flags.buffer_corrupted);
  header.add_uint64(DumpField::kTimestamp, interval.end_ns);
  header.add_bool(DumpField::kHitGuardrail, profile.hit_guardrail);
  header.add_string(DumpField::kHeapName, dump.heap_name);
  header.add_uint64(DumpField::kSamplingIntervalBytes, dump.sampling_interval);
  // Readers ignore peaks when this is 0.
  header.add_uint64(DumpField::kOrigSamplingIntervalBytes,
                    std::max<uint64_t>(1, dump.original_sampling_interval));
  if (profile.client_fault != ClientFault::kNone)
    header.add_enum(DumpField::kClientError, static_cast<int32_t>(profile.client_fault));
  header.add_uint64(DumpField::kStartTimestamp, interval.start_ns);
  AddQuality(header, quality);
  for (const HeapCount& count : kHeapCounts)
    header.add_uint64(count.field, dump.*count.value);
  header.add_uint64(DumpField::kPeakBytes, Rounded(dump.peak_total.bytes));
  header.add_uint64(DumpField::kPeakTimestamp, dump.peak_ns);
  AddLimits(header, dump);
  AddIdleTimes(header, dump);
  header.add_uint64(DumpField::kProfilingStart, profile.process.start_ns);
  AddAllocator(header, profile.memory);
  if (!flags.label.empty())
    header.add_string(DumpField::kLabel, std::string(BoundedText(flags.label)));
  if (!profile.reason.empty())
    header.add_string(DumpField::kReason, std::string(BoundedText(profile.reason)));
  return message;
}

void AppendSample(std::string& process_dump,
                  uint64_t callstack_iid,
                  const CallsiteTotals& totals,
                  const SampleExtras& extras,
                  WrittenTotals& written) {
  // Rounding may not make a value fall, nor let more be freed than was allocated.
  written.allocated = std::max(written.allocated, Rounded(totals.allocated.bytes));
  written.alloc_count = std::max(written.alloc_count, Rounded(totals.allocated.count));
  written.freed =
      std::min(written.allocated, std::max(written.freed, Rounded(totals.freed.bytes)));
  written.free_count = std::min(
      written.alloc_count, std::max(written.free_count, Rounded(totals.freed.count)));
  pbf_writer writer(process_dump);
  pbf_writer sample(writer, DumpField::kSamples);
  sample.add_uint64(SampleField::kCallstackId, callstack_iid);
  sample.add_uint64(SampleField::kSelfAllocated, written.allocated);
  sample.add_uint64(SampleField::kSelfFreed, written.freed);
  sample.add_uint64(SampleField::kAllocCount, written.alloc_count);
  sample.add_uint64(SampleField::kFreeCount, written.free_count);
  AddSampleErrors(sample, totals);
  AddIdle(sample, extras);
  if (extras.peak != nullptr) {
    sample.add_uint64(SampleField::kPeakBytes, Rounded(extras.peak->bytes));
    sample.add_uint64(SampleField::kPeakCount, Rounded(extras.peak->count));
  }
}

void AppendPeakSample(std::string& process_dump,
                      uint64_t callstack_iid,
                      const SampleExtras& extras,
                      const CallsiteTotals& totals) {
  const Estimate peak = extras.peak != nullptr ? *extras.peak : Estimate();
  pbf_writer writer(process_dump);
  pbf_writer sample(writer, DumpField::kSamples);
  sample.add_uint64(SampleField::kCallstackId, callstack_iid);
  sample.add_uint64(SampleField::kSelfMax, Rounded(peak.bytes));
  sample.add_uint64(SampleField::kSelfMaxCount, Rounded(peak.count));
  sample.add_uint64(SampleField::kCumulativeAllocated, Rounded(totals.allocated.bytes));
  sample.add_uint64(SampleField::kCumulativeFreed, Rounded(totals.freed.bytes));
  sample.add_uint64(SampleField::kCumulativeAllocCount, Rounded(totals.allocated.count));
  sample.add_uint64(SampleField::kCumulativeFreeCount, Rounded(totals.freed.count));
  AddSampleErrors(sample, totals);
}

void AppendThread(std::string& process_dump,
                  const ThreadDescription& thread,
                  const CallsiteTotals& totals) {
  const uint64_t allocated = Rounded(totals.allocated.bytes);
  const uint64_t alloc_count = Rounded(totals.allocated.count);
  pbf_writer writer(process_dump);
  pbf_writer message(writer, DumpField::kThreads);
  message.add_uint64(ThreadField::kTid, thread.tid);
  if (!thread.name.empty())
    message.add_string(ThreadField::kName, thread.name);
  message.add_uint64(ThreadField::kAllocated, allocated);
  message.add_uint64(ThreadField::kFreed,
                     std::min(allocated, Rounded(totals.freed.bytes)));
  message.add_uint64(ThreadField::kAllocCount, alloc_count);
  message.add_uint64(ThreadField::kFreeCount,
                     std::min(alloc_count, Rounded(totals.freed.count)));
  AddErrors(message,
            {ThreadField::kLiveBytesError, ThreadField::kLiveCountError,
             ThreadField::kAllocatedBytesError, ThreadField::kAllocCountError},
            totals);
}

void AppendShape(std::string& process_dump,
                 uint64_t callstack_iid,
                 const ShapeRow& row,
                 uint32_t tid) {
  pbf_writer writer(process_dump);
  pbf_writer message(writer, DumpField::kShapes);
  if (callstack_iid != 0)
    message.add_uint64(ShapeField::kCallstackId, callstack_iid);
  message.add_enum(ShapeField::kKind, static_cast<int32_t>(row.kind));
  message.add_uint32(ShapeField::kLog2, row.log2);
  message.add_uint64(ShapeField::kBytes, Rounded(row.estimate.bytes));
  message.add_uint64(ShapeField::kCount, Rounded(row.estimate.count));
  AddError(message, ShapeField::kBytesError, row.estimate.bytes_variance);
  AddError(message, ShapeField::kCountError, row.estimate.count_variance);
  if (tid != 0)
    message.add_uint64(ShapeField::kTid, tid);
}

void AppendBlocks(std::string& process_dump,
                  std::span<const LiveBlock> blocks,
                  const std::vector<uint64_t>& callstack_iids) {
  std::vector<uint64_t> deltas;
  std::vector<uint64_t> sizes;
  uint64_t last = 0;
  for (const LiveBlock& block : blocks) {
    deltas.push_back(block.address - std::exchange(last, block.address));
    sizes.push_back(block.size);
  }
  pbf_writer writer(process_dump);
  pbf_writer message(writer, DumpField::kLiveBlocks);
  message.add_packed_uint64(BlocksField::kAddressDelta, deltas.begin(), deltas.end());
  message.add_packed_uint64(BlocksField::kSize, sizes.begin(), sizes.end());
  message.add_packed_uint64(BlocksField::kCallstackId, callstack_iids.begin(),
                            callstack_iids.end());
}

}  // namespace heapprofd
