#include "trace/trace_writer.h"

#include <utility>

#include <protozero/pbf_writer.hpp>

#include "trace/fields.h"
#include "trace/mark_packets.h"
#include "trace/module_symbols.h"
#include "trace/recording_end.h"
#include "trace/service_packets.h"
#include "trace/unsampled_children.h"

namespace heapprofd {
namespace {

using protozero::pbf_writer;

constexpr uint32_t kServiceSequence = 1;

std::string ServicePacket(uint32_t field, const std::string& message) {
  std::string packet;
  pbf_writer writer(packet);
  writer.add_uint64(field::TracePacket::kTimestamp, BootTimeNs());
  writer.add_uint32(field::TracePacket::kTrustedPacketSequenceId, kServiceSequence);
  writer.add_message(field, message);
  return packet;
}

std::string StreamedAllocations(const StreamedEvents& events) {
  std::string message;
  pbf_writer writer(message);
  for (const StreamedEvents::Allocation& event : events.allocations) {
    writer.add_uint64(field::StreamingAllocation::kAddress, event.address);
    writer.add_uint64(field::StreamingAllocation::kSize, event.size);
    writer.add_uint64(field::StreamingAllocation::kSampleSize, event.sample_size);
    writer.add_uint64(field::StreamingAllocation::kClockMonotonicCoarseTimestamp,
                      event.time_ns);
    writer.add_uint32(field::StreamingAllocation::kHeapId, event.heap_id);
    writer.add_uint64(field::StreamingAllocation::kSequenceNumber, event.number);
  }
  return message;
}

std::string StreamedFrees(const StreamedEvents& events) {
  std::string message;
  pbf_writer writer(message);
  for (const StreamedEvents::Free& event : events.frees) {
    writer.add_uint64(field::StreamingFree::kAddress, event.address);
    writer.add_uint32(field::StreamingFree::kHeapId, event.heap_id);
    writer.add_uint64(field::StreamingFree::kSequenceNumber, event.number);
  }
  return message;
}

}  // namespace

Status TraceWriter::WriteHeader(const std::string& trace_config) {
  constexpr std::string_view kMarker =
      "\x82\x47\x7a\x76\xb2\x8d\x42\xba\x81\xdc\x33\x32\x6d\x57\xa0\x79";
  HPD_TRY(file_->Append(
      ServicePacket(field::TracePacket::kClockSnapshot, ClockSnapshotMessage())));
  HPD_TRY(file_->Append(
      ServicePacket(field::TracePacket::kSynchronizationMarker, std::string(kMarker))));
  if (!trace_config.empty())
    HPD_TRY(file_->Append(ServicePacket(field::TracePacket::kTraceConfig, trace_config)));
  HPD_TRY(
      file_->Append(ServicePacket(field::TracePacket::kTraceUuid, TraceUuidMessage())));
  return file_->Append(
      ServicePacket(field::TracePacket::kSystemInfo, SystemInfoMessage()));
}

Status TraceWriter::WriteProcessTree(std::span<const ProcessDescription> processes) {
  for (const std::string& message : ProcessTreeMessages(processes))
    HPD_TRY(file_->Append(ServicePacket(field::TracePacket::kProcessTree, message)));
  return {};
}

Status TraceWriter::WriteMarks(const TargetProfile& profile) {
  if (profile.marks.empty())
    return {};
  for (const std::string& packet : MarkPackets(profile, kServiceSequence))
    HPD_TRY(file_->Append(packet));
  return {};
}

Status TraceWriter::WriteProcessMemory(const TargetProfile& profile) {
  return file_->Append(
      ServicePacket(field::TracePacket::kProcessStats, ProcessMemoryMessage(profile)));
}

Status TraceWriter::WriteUnsampledChildren(const TargetProfile& profile) {
  if (profile.forked.count == 0 && profile.forked.alloc_calls == 0)
    return {};
  return file_->Append(ServicePacket(field::TracePacket::kUnsampledChildren,
                                     UnsampledChildrenMessage(profile)));
}

Status TraceWriter::WriteEnd(const RecordingEnd& end) {
  for (const ProcessEnd& process : end.processes)
    HPD_TRY(file_->Append(
        ServicePacket(field::TracePacket::kProcessEnd, ProcessEndMessage(process))));
  return file_->Append(
      ServicePacket(field::TracePacket::kRecordingEnd, RecordingEndMessage(end)));
}

Status TraceWriter::WritePacket(uint32_t field, const std::string& message) {
  return file_->Append(ServicePacket(field, message));
}

Status TraceWriter::WriteStream(int32_t pid, const StreamedEvents& events) {
  const auto append = [&](uint32_t field, const std::string& message) {
    std::string packet = ServicePacket(field, message);
    pbf_writer writer(packet);
    writer.add_int32(field::TracePacket::kTrustedPid, pid);
    return file_->Append(packet);
  };
  if (!events.allocations.empty())
    HPD_TRY(
        append(field::TracePacket::kStreamingAllocation, StreamedAllocations(events)));
  if (!events.frees.empty())
    HPD_TRY(append(field::TracePacket::kStreamingFree, StreamedFrees(events)));
  return {};
}

Status TraceWriter::WriteModuleSymbols(const TargetProfile& profile, NamedModules named) {
  for (const std::string& message :
       ModuleSymbolsMessages(profile.mappings, profile.frames, named))
    HPD_TRY(file_->Append(ServicePacket(field::TracePacket::kModuleSymbols, message)));
  return {};
}

}  // namespace heapprofd
