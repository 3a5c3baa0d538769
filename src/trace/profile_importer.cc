#include "trace/profile_importer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "trace/fields.h"
#include "trace/message_reader.h"

namespace heapprofd {
namespace {

// A series of more packets (of 400 kB) than this has no end.
constexpr size_t kMaxParts = size_t{1} << 16;

// SQL has signed numbers only.
int64_t Signed(uint64_t value) {
  return static_cast<int64_t>(
      std::min<uint64_t>(value, std::numeric_limits<int64_t>::max()));
}

DumpStats ReadStats(std::string_view message) {
  DumpStats stats;
  MessageReader reader(message);
  while (reader.Next()) {
    if (reader.field() == field::kStatsUnwindingErrors)
      stats.unwinding_errors = reader.Uint();
    else if (reader.field() == field::kStatsHeapSamples)
      stats.heap_samples = reader.Uint();
    else if (reader.field() == field::kStatsMapReparses)
      stats.map_reparses = reader.Uint();
    else if (reader.field() == field::kStatsUnwindingTime)
      stats.total_unwinding_time_us = reader.Uint();
    else if (reader.field() == field::kStatsSpinlockBlocked)
      stats.client_spinlock_blocked_us = reader.Uint();
  }
  return stats;
}

Quality ReadQuality(std::string_view message) {
  Quality quality;
  uint64_t* const values[] = {nullptr,
                              &quality.samples,
                              &quality.walked_samples,
                              &quality.copied_samples,
                              &quality.checked_samples,
                              &quality.agreed_samples,
                              &quality.lost_records,
                              &quality.lost_samples,
                              &quality.corrupt_records,
                              &quality.truncated_stacks,
                              &quality.unknown_stacks,
                              &quality.unmapped_frames,
                              &quality.unwind_errors,
                              &quality.unwind_time_us,
                              &quality.threads_without_slot};
  MessageReader reader(message);
  while (reader.Next()) {
    if (reader.field() < std::size(values))
      *values[reader.field()] = reader.Uint();
  }
  return quality;
}

}  // namespace

struct ProfileImporter::Header {
  ImportedDump dump;
  DumpTimes times;
  std::optional<Quality> quality;
  int64_t pid = 0;
  std::optional<int64_t> profiling_start;
  bool frees_are_unknown = false;  // ART reports none
};

struct ProfileImporter::Sample {
  uint64_t callstack = 0;
  uint64_t allocated = 0;
  uint64_t freed = 0;
  uint64_t alloc_count = 0;
  uint64_t free_count = 0;
  bool is_peak = false;
  bool has_estimate = false;
  TraceBuilder::CallsiteEstimate estimate;
};

void ProfileImporter::Add(std::string_view message, int64_t packet_ts) {
  MessageReader reader(message);
  bool is_continued = false;
  while (reader.Next()) {
    switch (reader.field()) {
      case field::kProfileProcessDumps:
        series_.push_back({std::string(reader.Bytes()), packet_ts});
        break;
      case field::kProfileContinued:
        is_continued = reader.Bool();
        break;
      case field::kProfileIndex: {
        const uint64_t index = reader.Uint();
        if (index != next_index_)
          builder_->trace().stats.Count(StatId::kHeapprofdMissingPacket);
        next_index_ = index + 1;
        break;
      }
      default:
        break;
    }
  }
  if (!is_continued || series_.size() >= kMaxParts)
    FinishSeries(/*is_finalized=*/!is_continued);
}

void ProfileImporter::BeginGeneration() {
  FinishSeries(/*is_finalized=*/false);
  ++generation_;
  next_index_ = 0;
}

void ProfileImporter::Finish() {
  FinishSeries(/*is_finalized=*/false);
}

void ProfileImporter::FinishSeries(bool is_finalized) {
  if (series_.empty())
    return;
  if (!is_finalized)
    builder_->trace().stats.Count(StatId::kHeapprofdNonFinalizedProfile);
  // Packets repeat the header; the parts of one dump belong together.
  std::map<std::tuple<uint32_t, StringId, int64_t>, std::vector<size_t>> groups;
  std::vector<const std::vector<size_t>*> order;
  std::vector<Header> headers;
  headers.reserve(series_.size());
  for (size_t i = 0; i < series_.size(); ++i) {
    headers.push_back(ReadHeader(series_[i]));
    const Header& header = headers.back();
    std::vector<size_t>& group =
        groups[{header.dump.upid, header.dump.heap_name, header.times.ts}];
    if (group.empty())
      order.push_back(&group);
    group.push_back(i);
  }
  for (const std::vector<size_t>* group : order) {
    const Header& header = headers[group->back()];
    const uint32_t dump = BeginDump(header, is_finalized);
    Heap& heap = heaps_[{header.dump.upid, header.dump.heap_name}];
    for (const size_t part : *group) {
      try {
        AddSamples(series_[part], header, heap);
      } catch (const protozero::exception&) {
        builder_->trace().stats.Count(StatId::kPacketParserError);
      }
      series_[part].bytes = std::string();
    }
    times_->push_back(header.times);
    times_->back().dump = dump;
  }
  series_.clear();
}

ProfileImporter::Header ProfileImporter::ReadHeader(const Part& part) const {
  Header header;
  header.times.ts = part.packet_ts;
  std::string_view heap_name = "unknown";
  try {
    ReadHeaderFields(part.bytes, header, heap_name);
  } catch (const protozero::exception&) {  // counted when the samples are read
  }
  header.dump.upid = header.profiling_start
                         ? builder_->ImageOf(header.pid, *header.profiling_start)
                         : builder_->ProcessOf(header.pid);
  header.dump.heap_name = builder_->Intern(heap_name);
  header.frees_are_unknown = heap_name == "com.android.art";
  return header;
}

void ProfileImporter::ReadHeaderFields(std::string_view bytes,
                                       Header& header,
                                       std::string_view& heap_name) {
  ImportedDump& dump = header.dump;
  MessageReader reader(bytes);
  while (reader.Next()) {
    switch (reader.field()) {
      case field::kDumpPid:
        header.pid = reader.Int();
        break;
      case field::kDumpFromStartup:
        dump.from_startup = reader.Bool();
        break;
      case field::kDumpRejectedConcurrent:
        dump.rejected_concurrent = reader.Bool();
        break;
      case field::kDumpStats:
        dump.stats = ReadStats(reader.Bytes());
        break;
      case field::kDumpDisconnected:
        dump.disconnected = reader.Bool();
        break;
      case field::kDumpBufferOverran:
        dump.buffer_overran = reader.Bool();
        break;
      case field::kDumpBufferCorrupted:
        dump.buffer_corrupted = reader.Bool();
        break;
      case field::kDumpTimestamp:
        header.times.ts = Signed(reader.Uint());
        header.times.is_monotonic = true;
        break;
      case field::kDumpHitGuardrail:
        dump.hit_guardrail = reader.Bool();
        break;
      case field::kDumpHeapName:
        heap_name = reader.Bytes();
        break;
      case field::kDumpSamplingInterval:
        dump.sampling_interval = reader.Uint();
        break;
      case field::kDumpOriginalInterval:
        dump.original_sampling_interval = reader.Uint();
        break;
      case field::kDumpClientError:
        dump.client_error = static_cast<uint32_t>(reader.Uint());
        break;
      case field::kDumpStartTimestamp:
        header.times.start_ts = Signed(reader.Uint());
        break;
      case field::kDumpQuality:
        header.quality = ReadQuality(reader.Bytes());
        break;
      case field::kDumpExactAllocCalls:
        dump.exact_alloc_calls = reader.Uint();
        break;
      case field::kDumpExactAllocBytes:
        dump.exact_alloc_bytes = reader.Uint();
        break;
      case field::kDumpPeakBytes:
        dump.peak_bytes = reader.Uint();
        break;
      case field::kDumpPeakTimestamp:
        if (const uint64_t ts = reader.Uint(); ts != 0)
          header.times.peak_ts = Signed(ts);
        break;
      case field::kDumpProfilingStart:
        header.profiling_start = reader.Int();
        break;
      default:
        break;
    }
  }
}

uint32_t ProfileImporter::BeginDump(const Header& header, bool is_finalized) {
  ImportedDump dump = header.dump;
  dump.is_finalized = is_finalized;
  if (header.quality) {
    std::vector<Quality>& qualities = builder_->trace().qualities;
    dump.quality = static_cast<uint32_t>(qualities.size());
    qualities.push_back(*header.quality);
  }
  CountFlags(header);
  return builder_->BeginDump(dump);
}

void ProfileImporter::CountFlags(const Header& header) {
  TraceStats& stats = builder_->trace().stats;
  const ImportedDump& dump = header.dump;
  const int64_t pid = header.pid;
  constexpr uint32_t kHitTimeout = 1;
  const std::pair<bool, StatId> flags[] = {
      {dump.buffer_corrupted, StatId::kHeapprofdBufferCorrupted},
      {dump.buffer_overran || dump.client_error == kHitTimeout,
       StatId::kHeapprofdBufferOverran},
      {dump.disconnected, StatId::kHeapprofdClientDisconnected},
      {dump.hit_guardrail, StatId::kHeapprofdHitGuardrail},
      {dump.rejected_concurrent, StatId::kHeapprofdRejectedConcurrent}};
  for (const auto& [is_set, stat] : flags) {
    if (is_set)
      stats.Add(stat, pid, 1);
  }
  if (dump.client_error != 0)
    stats.Set(StatId::kHeapprofdClientError, pid, dump.client_error);
  if (dump.rejected_concurrent)
    return;
  if (dump.sampling_interval > dump.original_sampling_interval &&
      dump.original_sampling_interval > 0)
    stats.Set(StatId::kHeapprofdSamplingIntervalAdjusted, pid,
              Signed(dump.sampling_interval - dump.original_sampling_interval));
  // Totals since the session's start, so the latest one counts.
  stats.Set(StatId::kHeapprofdUnwindTimeUs, pid,
            Signed(dump.stats.total_unwinding_time_us));
  stats.Set(StatId::kHeapprofdUnwindSamples, pid, Signed(dump.stats.heap_samples));
  stats.Set(StatId::kHeapprofdClientSpinlockBlocked, pid,
            Signed(dump.stats.client_spinlock_blocked_us));
}

ProfileImporter::Sample ProfileImporter::ReadSample(std::string_view bytes) {
  Sample sample;
  TraceBuilder::CallsiteEstimate& estimate = sample.estimate;
  const auto set_estimate = [&](auto& value, auto read) {
    value = read;
    sample.has_estimate = true;
  };
  MessageReader reader(bytes);
  while (reader.Next()) {
    switch (reader.field()) {
      case field::kSampleCallstack:
        sample.callstack = reader.Uint();
        break;
      case field::kSampleAllocated:
        sample.allocated = reader.Uint();
        break;
      case field::kSampleFreed:
        sample.freed = reader.Uint();
        break;
      case field::kSampleAllocCount:
        sample.alloc_count = reader.Uint();
        break;
      case field::kSampleFreeCount:
        sample.free_count = reader.Uint();
        break;
      case field::kSampleMax:
        sample.allocated = reader.Uint();
        sample.is_peak = true;
        break;
      case field::kSampleMaxCount:
        sample.alloc_count = reader.Uint();
        sample.is_peak = true;
        break;
      case field::kSampleLiveBytesError:
        set_estimate(estimate.live_bytes_error, reader.Double());
        break;
      case field::kSampleLiveCountError:
        set_estimate(estimate.live_count_error, reader.Double());
        break;
      case field::kSampleAllocatedBytesError:
        set_estimate(estimate.allocated_bytes_error, reader.Double());
        break;
      case field::kSampleAllocCountError:
        set_estimate(estimate.alloc_count_error, reader.Double());
        break;
      case field::kSamplePeakBytes:
        set_estimate(estimate.peak_bytes, Signed(reader.Uint()));
        break;
      case field::kSamplePeakCount:
        set_estimate(estimate.peak_count, Signed(reader.Uint()));
        break;
      default:
        break;
    }
  }
  return sample;
}

void ProfileImporter::AddSamples(const Part& part, const Header& header, Heap& heap) {
  MessageReader reader(part.bytes);
  while (reader.Next()) {
    if (reader.field() != field::kDumpSamples)
      continue;
    Sample sample = ReadSample(reader.Bytes());
    // Writers that do not tell the first interval counted the peak wrongly.
    if (sample.is_peak && header.dump.original_sampling_interval == 0)
      sample.alloc_count = 0;
    AddSample(sample, header, heap);
  }
}

void ProfileImporter::AddSample(const Sample& sample, const Header& header, Heap& heap) {
  uint32_t slot = heap.slots.Find(sample.callstack);
  if (slot == kNoId) {
    slot = static_cast<uint32_t>(heap.totals.size());
    heap.totals.emplace_back();
    heap.slots.Insert(sample.callstack, slot);
  }
  Totals& totals = heap.totals[slot];
  if (totals.callsite == kNoId || totals.generation != generation_) {
    // A counter goes on in a new generation if its stack is the same and nothing falls.
    const uint32_t callsite = interned_->FindCallstack(sample.callstack);
    if (callsite != totals.callsite || sample.allocated < totals.allocated ||
        sample.freed < totals.freed || sample.alloc_count < totals.alloc_count ||
        sample.free_count < totals.free_count)
      totals = Totals{.callsite = callsite};
    totals.generation = generation_;
  }
  if (totals.callsite == kNoId) {
    builder_->trace().stats.Count(StatId::kStackprofileInvalidCallstackId);
    return;
  }
  if (sample.is_peak)
    builder_->trace().dumps.back().is_peak = true;
  AddRows(sample, header, totals);
  if (sample.has_estimate)
    builder_->AddEstimate(totals.callsite, sample.estimate);
}

void ProfileImporter::AddRows(const Sample& sample,
                              const Header& header,
                              Totals& totals) {
  const auto difference = [](uint64_t now, uint64_t before) {
    return now >= before ? Signed(now - before) : -Signed(before - now);
  };
  const int64_t alloc_count = difference(sample.alloc_count, totals.alloc_count);
  const int64_t allocated = difference(sample.allocated, totals.allocated);
  const int64_t free_count = difference(sample.free_count, totals.free_count);
  const int64_t freed = difference(sample.freed, totals.freed);
  const bool has_fallen = alloc_count < 0 || allocated < 0 || free_count < 0 || freed < 0;
  if (has_fallen && !sample.is_peak) {
    builder_->trace().stats.Add(StatId::kHeapprofdMalformedPacket, header.dump.upid, 1);
    return;
  }
  builder_->AddAllocation(totals.callsite, alloc_count, allocated);
  if (!header.frees_are_unknown)
    builder_->AddAllocation(totals.callsite, -free_count, -freed);
  totals.allocated = sample.allocated;
  totals.freed = sample.freed;
  totals.alloc_count = sample.alloc_count;
  totals.free_count = sample.free_count;
}

}  // namespace heapprofd
