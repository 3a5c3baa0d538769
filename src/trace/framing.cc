#include "trace/framing.h"

#include <algorithm>

#include "trace/fields.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxVarint = 10;  // bytes

// False: `*bytes` ends in it, or it is no varint (`*is_corrupt`).
bool TakeVarint(std::string_view* bytes, uint64_t* value, bool* is_corrupt) {
  *value = 0;
  for (size_t i = 0; i < std::min(bytes->size(), kMaxVarint); ++i) {
    const auto byte = static_cast<unsigned char>((*bytes)[i]);
    *value |= uint64_t{byte & 0x7fu} << (7 * i);
    if (byte < 0x80) {
      bytes->remove_prefix(i + 1);
      return true;
    }
  }
  *is_corrupt = bytes->size() >= kMaxVarint;
  return false;
}

}  // namespace

FrameState ReadPacketStart(std::string_view bytes, PacketStart* start) {
  enum WireType : uint64_t { kVarint = 0, kFixed64 = 1, kDelimited = 2, kFixed32 = 5 };

  std::string_view rest = bytes;
  bool is_corrupt = false;
  uint64_t tag = 0;
  if (!TakeVarint(&rest, &tag, &is_corrupt))
    return is_corrupt ? FrameState::kCorrupt : FrameState::kIncomplete;
  const uint64_t number = tag >> 3;
  const uint64_t type = tag & 7;
  if (number == 0 ||
      (type != kVarint && type != kFixed64 && type != kDelimited && type != kFixed32))
    return FrameState::kCorrupt;
  uint64_t value = 0;
  if ((type == kVarint || type == kDelimited) && !TakeVarint(&rest, &value, &is_corrupt))
    return is_corrupt ? FrameState::kCorrupt : FrameState::kIncomplete;
  start->is_packet = number == field::Trace::kPacket && type == kDelimited;
  start->header_size = bytes.size() - rest.size();
  start->body_size = type == kDelimited ? value
                     : type == kFixed64 ? 8
                     : type == kFixed32 ? 4
                                        : 0;
  return start->body_size <= kMaxPacketBytes ? FrameState::kComplete
                                             : FrameState::kCorrupt;
}

std::optional<std::string_view> TakePacket(std::string_view* bytes) {
  PacketStart start;
  while (ReadPacketStart(*bytes, &start) == FrameState::kComplete &&
         bytes->size() - start.header_size >= start.body_size) {
    const std::string_view body = bytes->substr(start.header_size, start.body_size);
    bytes->remove_prefix(start.header_size + start.body_size);
    if (start.is_packet)
      return body;
  }
  return std::nullopt;
}

}  // namespace heapprofd
