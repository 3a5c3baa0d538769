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
  track.add_uint64(field::kTrackUuid, ProcessTrack(profile) + (is_process ? 0 : 1));
  if (is_process) {
    pbf_writer process(track, field::kTrackProcess);
    process.add_int32(1, profile.process.pid);
  } else {
    track.add_string(field::kTrackName, "heap marks");
    track.add_uint64(field::kTrackParentUuid, ProcessTrack(profile));
  }
  return message;
}

}  // namespace

std::vector<std::string> MarkPackets(const TargetProfile& profile, uint32_t sequence_id) {
  std::vector<std::string> packets;
  for (const bool is_process : {true, false}) {
    pbf_writer packet(packets.emplace_back());
    packet.add_uint64(field::kPacketTimestamp, BootTimeNs());
    packet.add_uint32(field::kPacketSequenceId, sequence_id);
    packet.add_message(field::kPacketTrackDescriptor, Descriptor(profile, is_process));
  }
  for (const Mark& mark : profile.marks) {
    pbf_writer packet(packets.emplace_back());
    packet.add_uint64(field::kPacketTimestamp, mark.time_ns);
    packet.add_uint32(field::kPacketTimestampClockId, kMonotonicCoarse);
    packet.add_uint32(field::kPacketSequenceId, sequence_id);
    pbf_writer event(packet, field::kPacketTrackEvent);
    event.add_uint32(field::kEventType, kTypeInstant);
    event.add_uint64(field::kEventTrackUuid, ProcessTrack(profile) + 1);
    event.add_string(field::kEventName, mark.name);
  }
  return packets;
}

}  // namespace heapprofd
