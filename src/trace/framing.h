// Packets of a serialized Trace: one after the other, each behind its tag and length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace heapprofd {

// Longer ones are not from a tracing service, and not read.
inline constexpr size_t kMaxPacketBytes = size_t{512} << 20;

// In TracePacket.sequence_flags.
inline constexpr uint32_t kIncrementalStateCleared = 1;

// What begins a packet, or another field of a Trace.
struct PacketStart {
  bool is_packet = false;  // else something to be skipped
  size_t header_size = 0;  // tag and length
  uint64_t body_size = 0;
};

enum class FrameState : unsigned char {
  kComplete,    // `start` is set
  kIncomplete,  // more bytes are needed
  kCorrupt,     // no field of a Trace begins here
};

FrameState ReadPacketStart(std::string_view bytes, PacketStart* start);

// Removes fields from the front of `*bytes` up to and including the first whole packet.
// None: there is no further one; `*bytes` is what is left.
std::optional<std::string_view> TakePacket(std::string_view* bytes);

}  // namespace heapprofd
