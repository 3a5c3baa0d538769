// Sizes that keep every packet below the 500 kB that readers are promised, whatever names
// the profiled program has.
#pragma once

#include <cstddef>
#include <string_view>

namespace heapprofd {

// A packet is closed once it has this many bytes.
inline constexpr size_t kPacketTarget = 400'000;

// Longest text that is written in one piece, in bytes; what is longer is cut. Between two
// looks at kPacketTarget at most two texts and a path are added.
inline constexpr size_t kMaxTextBytes = size_t{32} << 10;

inline std::string_view BoundedText(std::string_view text) {
  return text.substr(0, kMaxTextBytes);
}

}  // namespace heapprofd
