#include "import/perfetto/profile_importer.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "import/perfetto/dump_counters.h"
#include "profile/figures.h"
#include "trace/field_reader.h"
#include "trace/fields.h"
#include "trace/message_reader.h"

namespace heapprofd {
namespace {

using AllocatorField = field::ProfilePacket::AllocatorStats;
using DumpField = field::ProfilePacket::ProcessHeapSamples;
using ThreadField = field::ProfilePacket::ThreadTotals;

// A series of more packets (of 400 kB) than this has no end.
constexpr size_t kMaxParts = size_t{1} << 16;

// Rows cost more than the bytes that ask for them.
constexpr size_t kMaxThreadTotals = 1'000'000;

ImportedAllocator ReadAllocator(TraceBuilder& builder, std::string_view message) {
  ImportedAllocator allocator;
  MessageReader reader(message);
  while (reader.Next()) {
    if (reader.field() == AllocatorField::kAllocator)
      allocator.name = builder.Intern(reader.Bytes());
    else if (reader.field() == AllocatorField::kSystem)
      allocator.system = reader.Uint();
    else if (reader.field() == AllocatorField::kInUse)
      allocator.in_use = reader.Uint();
    else if (reader.field() == AllocatorField::kFree)
      allocator.free = reader.Uint();
  }
  return allocator;
}

}  // namespace

struct ProfileImporter::Header {
  ImportedDump dump;
  DumpTimes times;
  std::optional<Quality> quality;
  int64_t pid = 0;
  std::optional<int64_t> profiling_start;
  bool frees_are_unknown = false;         // ART reports none
  std::vector<std::string_view> threads;  // in the part's bytes
};

void ProfileImporter::Add(std::string_view message) {
  MessageReader reader(message);
  bool is_continued = false;
  while (reader.Next()) {
    switch (reader.field()) {
      case field::ProfilePacket::kProcessDumps:
        series_.emplace_back(reader.Bytes());
        break;
      case field::ProfilePacket::kContinued:
        is_continued = reader.Bool();
        break;
      case field::ProfilePacket::kIndex: {
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
  builder_->decoding().Push(decoder_, NewGeneration());
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
    for (const size_t part : *group) {
      AddThreads(headers[part], dump);
      builder_->decoding().Push(
          decoder_,
          SampleStep{.dump = dump,
                     .upid = header.dump.upid,
                     .heap_name = header.dump.heap_name,
                     .frees_are_unknown = header.frees_are_unknown,
                     .peak_counts_are_wrong = header.dump.original_sampling_interval == 0,
                     .message = std::move(series_[part])});
    }
    times_->push_back(header.times);
    times_->back().dump = dump;
  }
  series_.clear();
}

ProfileImporter::Header ProfileImporter::ReadHeader(std::string_view part) const {
  Header header;
  std::string_view heap_name = "unknown";
  try {
    ReadHeaderFields(part, header, heap_name);
  } catch (const protozero::exception&) {  // counted when the samples are read
  }
  header.dump.upid = header.profiling_start ? builder_->processes().ImageOf(
                                                  header.pid, *header.profiling_start)
                                            : builder_->processes().ProcessOf(header.pid);
  header.dump.heap_name = builder_->Intern(heap_name);
  header.frees_are_unknown = heap_name == "com.android.art";
  if (header.frees_are_unknown)
    header.dump.told.live_size = header.dump.told.live_count = false;
  return header;
}

void ProfileImporter::ReadHeaderFields(std::string_view bytes,
                                       Header& header,
                                       std::string_view& heap_name) const {
  ImportedDump& dump = header.dump;
  FieldReader reader(bytes);
  while (reader.Next()) {
    switch (reader.field()) {
      case DumpField::kPid:
        header.pid = static_cast<int64_t>(reader.Uint());
        break;
      case DumpField::kFromStartup:
        dump.from_startup = reader.Bool();
        break;
      case DumpField::kRejectedConcurrent:
        dump.rejected_concurrent = reader.Bool();
        break;
      case DumpField::kStats:
        dump.stats = ReadDumpStats(reader.Bytes());
        break;
      case DumpField::kDisconnected:
        dump.disconnected = reader.Bool();
        break;
      case DumpField::kBufferOverran:
        dump.buffer_overran = reader.Bool();
        break;
      case DumpField::kBufferCorrupted:
        dump.buffer_corrupted = reader.Bool();
        break;
      case DumpField::kTimestamp:
        header.times.ts = Signed(reader.Uint());
        break;
      case DumpField::kHitGuardrail:
        dump.hit_guardrail = reader.Bool();
        break;
      case DumpField::kHeapName:
        heap_name = reader.Bytes();
        break;
      case DumpField::kSamplingIntervalBytes:
        dump.sampling_interval = reader.Uint();
        break;
      case DumpField::kOrigSamplingIntervalBytes:
        dump.original_sampling_interval = reader.Uint();
        break;
      case DumpField::kClientError:
        dump.client_error = static_cast<uint32_t>(reader.Uint());
        break;
      case DumpField::kStartTimestamp:
        header.times.start_ts = Signed(reader.Uint());
        break;
      default:
        ReadOwnField(reader, header);
        break;
    }
  }
}

// What Perfetto's traces do not have.
void ProfileImporter::ReadOwnField(FieldReader& reader, Header& header) const {
  ImportedDump& dump = header.dump;
  switch (reader.field()) {
    case DumpField::kQuality:
      header.quality = ReadDumpQuality(reader.Bytes());
      break;
    case DumpField::kPeakBytes:
      dump.peak_bytes = reader.Uint();
      break;
    case DumpField::kLiveLow:
      dump.live_low = reader.Uint();
      break;
    case DumpField::kLiveHigh:
      dump.live_high = reader.Uint();
      break;
    case DumpField::kPeakLow:
      dump.peak_low = reader.Uint();
      break;
    case DumpField::kPeakHigh:
      dump.peak_high = reader.Uint();
      break;
    case DumpField::kPeakTimestamp:
      if (const uint64_t ts = reader.Uint(); ts != 0)
        header.times.peak_ts = Signed(ts);
      break;
    case DumpField::kIdleSince:
      header.times.idle_ts = Signed(reader.Uint());
      break;
    case DumpField::kIdleUntil:
      header.times.idle_until_ts = Signed(reader.Uint());
      break;
    case DumpField::kIdleUnseen:
      dump.idle_unseen = reader.Uint();
      break;
    case DumpField::kProfilingStart:
      header.profiling_start = static_cast<int64_t>(reader.Uint());
      break;
    case DumpField::kLabel:
      dump.label = builder_->Intern(reader.Bytes());
      break;
    case DumpField::kReason:
      dump.reason = builder_->Intern(reader.Bytes());
      break;
    case DumpField::kAllocator:
      dump.allocator = ReadAllocator(*builder_, reader.Bytes());
      break;
    case DumpField::kThreads:
      header.threads.push_back(reader.Bytes());
      break;
    default:
      for (const HeapCount& count : kHeapCounts) {
        if (count.field == reader.field())
          dump.*count.value = reader.Uint();
      }
      break;
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
  return builder_->dumps().Begin(dump);
}

void ProfileImporter::AddThreads(const Header& header, uint32_t dump) {
  ImportedTrace& trace = builder_->trace();
  for (const std::string_view message : header.threads) {
    if (trace.thread_totals.size() >= kMaxThreadTotals)
      return trace.stats.Count(StatId::kPacketParserError);
    try {
      trace.thread_totals.push_back(ReadThread(message, header.dump.upid));
      trace.thread_totals.back().dump = dump;
    } catch (const protozero::exception&) {
      trace.stats.Count(StatId::kPacketParserError);
    }
  }
}

ThreadTotals ProfileImporter::ReadThread(std::string_view message, uint32_t upid) {
  ThreadTotals row;
  int64_t* const numbers[] = {&row.alloc_size, &row.free_size, &row.alloc_count,
                              &row.free_count};
  double* const errors[] = {&row.live_size_error, &row.live_count_error,
                            &row.alloc_size_error, &row.alloc_count_error};
  int64_t tid = 0;
  std::string_view name;
  MessageReader reader(message);
  while (reader.Next()) {
    const uint32_t number = reader.field();
    if (number == ThreadField::kTid)
      tid = Signed(reader.Uint());
    else if (number == ThreadField::kName)
      name = reader.Bytes();
    else if (number >= ThreadField::kAllocated && number <= ThreadField::kFreeCount)
      *numbers[number - ThreadField::kAllocated] = Signed(reader.Uint());
    else if (number >= ThreadField::kLiveBytesError &&
             number <= ThreadField::kAllocCountError)
      *errors[number - ThreadField::kLiveBytesError] = reader.Double();
  }
  if (tid == 0)
    return row;
  row.utid = builder_->processes().ThreadOf(tid, upid);
  if (!name.empty())
    builder_->trace().threads[row.utid].name = builder_->Intern(name);
  return row;
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

}  // namespace heapprofd
