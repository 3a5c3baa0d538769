// Tells whether bytes that we have kept in a file are still the same. In the manner of
// FNV-1a, by words: finds damage, not malice.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/byte_reader.h"

namespace heapprofd {

// `before`: the checksum of what comes before these bytes.
inline uint64_t Checksum(std::string_view bytes, uint64_t before = 0xcbf29ce484222325) {
  uint64_t hash = before;
  const auto add = [&hash](uint64_t word) {
    hash = (hash ^ word) * 0x100000001b3;
    hash ^= hash >> 29;
  };
  ByteReader reader(bytes);
  while (reader.left() >= sizeof(uint64_t))
    add(reader.Read<uint64_t>());
  while (reader.left() > 0)
    add(reader.Read<uint8_t>());
  return hash;
}

}  // namespace heapprofd
