#include "trace/trace_writer.h"

#include <sys/random.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include <protozero/pbf_writer.hpp>

#include "trace/fields.h"

namespace heapprofd {
namespace {

using protozero::pbf_writer;

constexpr uint32_t kServiceSequence = 1;
constexpr uint32_t kProfileSequence = 2;
constexpr uint32_t kIncrementalStateCleared = 1;
constexpr size_t kPacketTarget = 400'000;  // bytes; the limit is 500 kB

// Clock ids of Perfetto's ClockSnapshot with the kernel's.
constexpr std::array<std::pair<uint32_t, clockid_t>, 6> kClocks = {
    {{6, CLOCK_BOOTTIME},
     {2, CLOCK_REALTIME_COARSE},
     {4, CLOCK_MONOTONIC_COARSE},
     {1, CLOCK_REALTIME},
     {3, CLOCK_MONOTONIC},
     {5, CLOCK_MONOTONIC_RAW}}};

uint64_t NowNs(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<uint64_t>(now.tv_nsec);
}

std::string ClockSnapshot() {
  std::string message;
  pbf_writer snapshot(message);
  for (const auto& [id, clock] : kClocks) {
    pbf_writer entry(snapshot, 1);
    entry.add_uint32(1, id);
    entry.add_uint64(2, NowNs(clock));
  }
  snapshot.add_enum(2, 6);
  return message;
}

std::string SystemInfo() {
  std::string message;
  pbf_writer info(message);
  utsname names{};
  uname(&names);
  {
    pbf_writer utsname_writer(info, 1);
    utsname_writer.add_string(1, names.sysname);
    utsname_writer.add_string(2, names.version);
    utsname_writer.add_string(3, names.release);
    utsname_writer.add_string(4, names.machine);
  }
  info.add_int64(3, sysconf(_SC_CLK_TCK));
  info.add_string(4, "heapprofd for Linux");
  info.add_uint32(6, static_cast<uint32_t>(sysconf(_SC_PAGESIZE)));
  info.add_uint32(8, static_cast<uint32_t>(sysconf(_SC_NPROCESSORS_ONLN)));
  return message;
}

std::string TraceUuid() {
  std::array<int64_t, 2> random{};
  static_cast<void>(getrandom(random.data(), sizeof(random), 0));
  std::string message;
  pbf_writer uuid(message);
  uuid.add_int64(1, random[0]);
  uuid.add_int64(2, random[1]);
  return message;
}

std::string ServicePacket(uint32_t field, const std::string& message) {
  std::string packet;
  pbf_writer writer(packet);
  writer.add_uint64(field::kPacketTimestamp, NowNs(CLOCK_BOOTTIME));
  writer.add_uint32(field::kPacketSequenceId, kServiceSequence);
  writer.add_message(field, message);
  return packet;
}

uint64_t Rounded(double value) {
  return value > 0 ? static_cast<uint64_t>(std::llround(value)) : 0;
}

void AddError(pbf_writer& writer, uint32_t field, double variance) {
  if (variance > 0)
    writer.add_double(field, std::sqrt(variance));
}

// Everything of ProcessHeapSamples but the samples.
std::string DumpHeader(const TargetProfile& profile,
                       const HeapDump& dump,
                       const DumpFlags& flags) {
  const Quality& quality = profile.quality;
  const bool is_peak = flags.mode == DumpMode::kPeak;
  std::string message;
  pbf_writer header(message);
  header.add_uint64(field::kDumpPid, static_cast<uint64_t>(profile.process.pid));
  header.add_bool(field::kDumpFromStartup, profile.from_startup);
  if (flags.rejected_concurrent)
    header.add_bool(field::kDumpRejectedConcurrent, true);
  {
    pbf_writer stats(header, field::kDumpStats);
    stats.add_uint64(field::kStatsUnwindingErrors, quality.unwind_errors);
    stats.add_uint64(field::kStatsHeapSamples, quality.samples);
    stats.add_uint64(field::kStatsMapReparses, quality.map_reparses);
    stats.add_uint64(field::kStatsUnwindingTime, quality.unwind_time_us);
  }
  header.add_bool(field::kDumpDisconnected, flags.disconnected);
  header.add_bool(field::kDumpBufferOverran, flags.buffer_overran);
  header.add_bool(field::kDumpBufferCorrupted, flags.buffer_corrupted);
  header.add_uint64(field::kDumpTimestamp,
                    is_peak && dump.peak_ns != 0 ? dump.peak_ns : dump.end_ns);
  header.add_bool(field::kDumpHitGuardrail, flags.hit_guardrail);
  header.add_string(field::kDumpHeapName, dump.heap_name);
  header.add_uint64(field::kDumpSamplingInterval, dump.sampling_interval);
  header.add_uint64(field::kDumpOriginalInterval, dump.original_sampling_interval);
  header.add_uint64(field::kDumpStartTimestamp, dump.start_ns);
  {
    pbf_writer counters(header, field::kDumpQuality);
    const std::array<uint64_t, 14> values = {
        quality.samples,         quality.walked_samples,      quality.copied_samples,
        quality.checked_samples, quality.agreed_samples,      quality.lost_records,
        quality.lost_samples,    quality.corrupt_records,     quality.truncated_stacks,
        quality.unknown_stacks,  quality.unmapped_frames,     quality.unwind_errors,
        quality.unwind_time_us,  quality.threads_without_slot};
    for (size_t i = 0; i < values.size(); ++i)
      counters.add_uint64(static_cast<uint32_t>(i + 1), values[i]);
  }
  header.add_uint64(field::kDumpExactAllocCalls, dump.exact_alloc_calls);
  header.add_uint64(field::kDumpExactAllocBytes, dump.exact_alloc_bytes);
  header.add_uint64(field::kDumpPeakBytes, Rounded(dump.peak_total.bytes));
  header.add_uint64(field::kDumpPeakTimestamp, dump.peak_ns);
  return message;
}

void AddSample(pbf_writer& process_dump,
               uint64_t callstack,
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
  pbf_writer sample(process_dump, field::kDumpSamples);
  sample.add_uint64(field::kSampleCallstack, callstack);
  sample.add_uint64(field::kSampleAllocated, written.allocated);
  sample.add_uint64(field::kSampleFreed, written.freed);
  sample.add_uint64(field::kSampleAllocCount, written.alloc_count);
  sample.add_uint64(field::kSampleFreeCount, written.free_count);
  const Estimate live = totals.live();
  AddError(sample, field::kSampleLiveBytesError, live.bytes_variance);
  AddError(sample, field::kSampleLiveCountError, live.count_variance);
  AddError(sample, field::kSampleAllocatedBytesError, totals.allocated.bytes_variance);
  AddError(sample, field::kSampleAllocCountError, totals.allocated.count_variance);
  if (peak != nullptr) {
    sample.add_uint64(field::kSamplePeakBytes, Rounded(peak->bytes));
    sample.add_uint64(field::kSamplePeakCount, Rounded(peak->count));
  }
}

void AddPeakSample(pbf_writer& process_dump, uint64_t callstack, const Estimate& peak) {
  pbf_writer sample(process_dump, field::kDumpSamples);
  sample.add_uint64(field::kSampleCallstack, callstack);
  sample.add_uint64(field::kSampleMax, Rounded(peak.bytes));
  sample.add_uint64(field::kSampleMaxCount, Rounded(peak.count));
}

std::vector<CallsiteId> SortedCallsites(const HeapDump& dump, DumpMode mode) {
  std::vector<CallsiteId> ids;
  if (mode == DumpMode::kPeak) {
    for (const auto& [id, estimate] : dump.peak)
      ids.push_back(id);
  } else {
    for (const auto& [id, totals] : dump.callsites)
      ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::vector<std::string_view> PathComponents(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const size_t end = std::min(path.find('/'), path.size());
    if (end > 0)
      parts.push_back(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return parts;
}

}  // namespace

// Interned objects that wait to be written, and whether they are enough for a packet.
class TraceWriter::InternedBatch {
 public:
  InternedBatch() : writer_(data_) {}

  pbf_writer& writer() { return writer_; }

  bool IsFull() const { return data_.size() >= kPacketTarget; }

  bool IsEmpty() const { return data_.empty(); }

  const std::string& data() const { return data_; }

  void Clear() { data_.clear(); }

 private:
  std::string data_;
  pbf_writer writer_;
};

Status TraceWriter::WriteHeader(const std::string& trace_config) {
  constexpr std::string_view kMarker =
      "\x82\x47\x7a\x76\xb2\x8d\x42\xba\x81\xdc\x33\x32\x6d\x57\xa0\x79";
  HPD_TRY(file_.Append(ServicePacket(field::kPacketClockSnapshot, ClockSnapshot())));
  HPD_TRY(file_.Append(
      ServicePacket(field::kPacketSynchronizationMarker, std::string(kMarker))));
  if (!trace_config.empty())
    HPD_TRY(file_.Append(ServicePacket(field::kPacketTraceConfig, trace_config)));
  HPD_TRY(file_.Append(ServicePacket(field::kPacketTraceUuid, TraceUuid())));
  return file_.Append(ServicePacket(field::kPacketSystemInfo, SystemInfo()));
}

Status TraceWriter::WriteProcessTree(std::span<const ProcessDescription> processes) {
  std::string message;
  pbf_writer tree(message);
  for (const ProcessDescription& process : processes) {
    pbf_writer entry(tree, 1);
    entry.add_int32(1, process.pid);
    entry.add_int32(2, process.parent_pid);
    for (const std::string& argument : process.cmdline)
      entry.add_string(3, argument);
    entry.add_int32(5, static_cast<int32_t>(process.uid));
  }
  return file_.Append(ServicePacket(field::kPacketProcessTree, message));
}

Status TraceWriter::WriteSequencePacket(uint32_t field, const std::string& message) {
  std::string packet;
  pbf_writer writer(packet);
  writer.add_uint64(field::kPacketTimestamp, NowNs(CLOCK_BOOTTIME));
  writer.add_uint32(field::kPacketSequenceId, kProfileSequence);
  if (!sequence_has_begun_) {
    sequence_has_begun_ = true;
    writer.add_uint32(field::kPacketSequenceFlags, kIncrementalStateCleared);
  }
  writer.add_message(field, message);
  return file_.Append(packet);
}

Status TraceWriter::WriteProfilePacket(const std::string& process_dump,
                                       bool is_continued) {
  std::string message;
  pbf_writer writer(message);
  if (!process_dump.empty())
    writer.add_message(field::kProfileProcessDumps, process_dump);
  if (is_continued)
    writer.add_bool(field::kProfileContinued, true);
  writer.add_uint64(field::kProfileIndex, next_index_++);
  return WriteSequencePacket(field::kPacketProfilePacket, message);
}

Status TraceWriter::WriteDump(const TargetProfile& profile,
                              uint64_t target_id,
                              const DumpFlags& flags) {
  if (!sequence_has_begun_) {
    InternedBatch batch;
    for (const uint32_t kind : {field::kInternedBuildIds, field::kInternedMappingPaths,
                                field::kInternedFunctionNames}) {
      pbf_writer entry(batch.writer(), kind);
      entry.add_uint64(1, 0);
      entry.add_bytes(2, "");
    }
    HPD_TRY(WriteSequencePacket(field::kPacketInternedData, batch.data()));
  }
  Target& target = targets_[target_id];
  target.mapping_iids.resize(profile.mappings.size());
  target.frame_iids.resize(profile.frames.size());
  for (const HeapDump& dump : profile.heaps)
    HPD_TRY(WriteHeap(profile, dump, target, flags));
  return {};
}

Status TraceWriter::WriteHeap(const TargetProfile& profile,
                              const HeapDump& dump,
                              Target& target,
                              const DumpFlags& flags) {
  const std::string header = DumpHeader(profile, dump, flags);
  const std::vector<CallsiteId> callsites = SortedCallsites(dump, flags.mode);
  auto& iids = target.callstack_iids[dump.heap_name];
  auto& totals = target.totals[dump.heap_name];
  std::vector<CallsiteId> new_callsites;
  std::string message = header;
  for (const CallsiteId id : callsites) {
    const auto [iid, is_new] = iids.try_emplace(id, next_iid_);
    if (is_new) {
      ++next_iid_;
      new_callsites.push_back(id);
    }
    pbf_writer writer(message);
    const auto peak = dump.peak.find(id);
    if (flags.mode == DumpMode::kPeak)
      AddPeakSample(writer, iid->second, peak->second);
    else
      AddSample(writer, iid->second, dump.callsites.at(id),
                peak != dump.peak.end() ? &peak->second : nullptr, totals[id]);
    if (message.size() >= kPacketTarget) {
      HPD_TRY(WriteProfilePacket(message, /*is_continued=*/true));
      message = header;
    }
  }
  HPD_TRY(WriteProfilePacket(message, /*is_continued=*/true));
  HPD_TRY(WriteInterned(profile, dump, target, new_callsites));
  return WriteProfilePacket("", /*is_continued=*/false);
}

Status TraceWriter::WriteInterned(const TargetProfile& profile,
                                  const HeapDump& dump,
                                  Target& target,
                                  const std::vector<CallsiteId>& callsites) {
  const auto& iids = target.callstack_iids[dump.heap_name];
  InternedBatch batch;
  for (const CallsiteId id : callsites) {
    std::vector<uint64_t> frames;  // outermost first
    for (CallsiteId at = id; at != kNoId; at = profile.callsites[at].parent)
      frames.push_back(InternFrame(profile, profile.callsites[at].frame, target, batch));
    std::reverse(frames.begin(), frames.end());
    {
      pbf_writer callstack(batch.writer(), field::kInternedCallstacks);
      callstack.add_uint64(1, iids.at(id));
      for (const uint64_t frame : frames)
        callstack.add_uint64(2, frame);
    }
    if (batch.IsFull()) {
      HPD_TRY(WriteSequencePacket(field::kPacketInternedData, batch.data()));
      batch.Clear();
    }
  }
  return batch.IsEmpty() ? Status()
                         : WriteSequencePacket(field::kPacketInternedData, batch.data());
}

uint64_t TraceWriter::InternString(uint32_t kind,
                                   std::string_view text,
                                   InternedBatch& batch) {
  if (text.empty())
    return 0;
  const auto [entry, is_new] =
      strings_.try_emplace(std::to_string(kind) + ":" + std::string(text), next_iid_);
  if (is_new) {
    ++next_iid_;
    pbf_writer writer(batch.writer(), kind);
    writer.add_uint64(1, entry->second);
    writer.add_bytes(2, text.data(), text.size());
  }
  return entry->second;
}

uint64_t TraceWriter::InternMapping(const TargetProfile& profile,
                                    MappingId id,
                                    Target& target,
                                    InternedBatch& batch) {
  if (id == kNoId)
    return 0;
  uint64_t& iid = target.mapping_iids[id];
  if (iid != 0)
    return iid;
  const Mapping& mapping = profile.mappings[id];
  const uint64_t build_id =
      InternString(field::kInternedBuildIds, mapping.build_id, batch);
  std::vector<uint64_t> path;
  for (const std::string_view component : PathComponents(mapping.path))
    path.push_back(InternString(field::kInternedMappingPaths, component, batch));
  iid = next_iid_++;
  pbf_writer writer(batch.writer(), field::kInternedMappings);
  writer.add_uint64(1, iid);
  writer.add_uint64(2, build_id);
  writer.add_uint64(3, mapping.start_offset);
  writer.add_uint64(4, mapping.start);
  writer.add_uint64(5, mapping.end);
  writer.add_uint64(6, mapping.load_bias);
  for (const uint64_t component : path)
    writer.add_uint64(7, component);
  writer.add_uint64(8, mapping.exact_offset);
  return iid;
}

uint64_t TraceWriter::InternFrame(const TargetProfile& profile,
                                  FrameId id,
                                  Target& target,
                                  InternedBatch& batch) {
  uint64_t& iid = target.frame_iids[id];
  if (iid != 0)
    return iid;
  const Frame& frame = profile.frames[id];
  const uint64_t mapping = InternMapping(profile, frame.mapping, target, batch);
  uint64_t name = 0;
  if (!frame.lines.empty()) {
    const SourceLine& outermost = frame.lines.back();
    name = InternString(
        field::kInternedFunctionNames,
        outermost.system_name.empty() ? outermost.function : outermost.system_name,
        batch);
  }
  iid = next_iid_++;
  pbf_writer writer(batch.writer(), field::kInternedFrames);
  writer.add_uint64(1, iid);
  writer.add_uint64(2, name);
  writer.add_uint64(3, mapping);
  writer.add_uint64(4, frame.rel_pc);
  return iid;
}

Status TraceWriter::WriteModuleSymbols(const TargetProfile& profile) {
  std::map<std::pair<std::string, std::string>, std::map<uint64_t, const Frame*>> modules;
  for (const Frame& frame : profile.frames) {
    if (frame.mapping == kNoId || frame.lines.empty() ||
        profile.mappings[frame.mapping].build_id.empty())
      continue;
    const Mapping& mapping = profile.mappings[frame.mapping];
    modules[{mapping.path, mapping.build_id}].emplace(frame.rel_pc, &frame);
  }
  for (const auto& [module, frames] : modules) {
    auto next = frames.begin();
    while (next != frames.end()) {
      std::string message;
      pbf_writer writer(message);
      writer.add_string(1, module.first);
      writer.add_bytes(2, module.second);
      for (; next != frames.end() && message.size() < kPacketTarget; ++next) {
        pbf_writer address(writer, 3);
        address.add_uint64(1, next->first);
        for (const SourceLine& line : next->second->lines) {
          pbf_writer entry(address, 2);
          entry.add_string(1,
                           line.system_name.empty() ? line.function : line.system_name);
          if (!line.file.empty())
            entry.add_string(2, line.file);
          entry.add_uint32(3, line.line);
        }
      }
      HPD_TRY(file_.Append(ServicePacket(field::kPacketModuleSymbols, message)));
    }
  }
  return {};
}

}  // namespace heapprofd
