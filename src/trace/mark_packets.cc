#include "trace/mark_packets.h"

#include <protozero/pbf_writer.hpp>

#include "trace/fields.h"
#include "trace/service_packets.h"

namespace heapprofd {
namespace {

using protozero::pbf_writer;

constexpr uint32_t kMonotonicCoarse = 4;  // clock id in the ClockSnapshot
constexpr uint32_t kTypeInstant = 3;

// Track ids are one number space of the trace: far from those of small counters.
uint64_t ProcessTrack(const TargetProfile& profile) {
  return uint64_t{0x68706400} << 32 | uint64_t{static_cast<uint32_t>(profile.process.pid)}
                                          << 1;
}

std::string Descriptor(const TargetProfile& profile, bool is_process) {
  std::string message;
  pbf_writer track(message);
  track.add_uint64(field::TrackDescriptor::kUuid,
                   ProcessTrack(profile) + (is_process ? 0 : 1));
  if (is_process) {
    pbf_writer process(track, field::TrackDescriptor::kProcess);
    process.add_int32(field::TrackDescriptor::Process::kPid, profile.process.pid);
  } else {
    track.add_string(field::TrackDescriptor::kName, "heap marks");
    track.add_uint64(field::TrackDescriptor::kParentUuid, ProcessTrack(profile));
  }
  return message;
}

}  // namespace

std::vector<std::string> MarkPackets(const TargetProfile& profile, uint32_t sequence_id) {
  std::vector<std::string> packets;
  for (const bool is_process : {true, false}) {
    pbf_writer packet(packets.emplace_back());
    packet.add_uint64(field::TracePacket::kTimestamp, BootTimeNs());
    packet.add_uint32(field::TracePacket::kTrustedPacketSequenceId, sequence_id);
    packet.add_message(field::TracePacket::kTrackDescriptor,
                       Descriptor(profile, is_process));
  }
  for (const Mark& mark : profile.marks) {
    pbf_writer packet(packets.emplace_back());
    packet.add_uint64(field::TracePacket::kTimestamp, mark.time_ns);
    packet.add_uint32(field::TracePacket::kTimestampClockId, kMonotonicCoarse);
    packet.add_uint32(field::TracePacket::kTrustedPacketSequenceId, sequence_id);
    pbf_writer event(packet, field::TracePacket::kTrackEvent);
    event.add_uint32(field::TrackEvent::kType, kTypeInstant);
    event.add_uint64(field::TrackEvent::kTrackUuid, ProcessTrack(profile) + 1);
    event.add_string(field::TrackEvent::kName, mark.name);
  }
  return packets;
}

}  // namespace heapprofd
